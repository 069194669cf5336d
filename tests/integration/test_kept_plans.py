"""What PostgreSQL goes through for a statement does not grow with what is stored, whatever it knew when it planned."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import text

from app import users
from app.audit.run import audit
from app.batches import schedule
from app.batches.accept import Acceptance, Send, accept
from app.batches.batch import find_final
from app.batches.request import IssueRequest
from app.ledger.claim import claim_crossed, register
from app.postgres.connections import engine
from app.postgres.database import snapshot, transaction
from tests.conftest import forget_everything
from tests.integration import books, races

ANN = "ann@example.com"
MANY = 5_000

# Of transactions, those of each partition.
_READ = text("""
    SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables
    WHERE relname = :table OR relname LIKE :table || '\\_from\\_%'
""")


def _insert_users(first: int, last: int) -> None:
    books.execute(f"""
        INSERT INTO users (email, email_key, first_name, last_name, created_at)
        SELECT 'u' || n || '@example.com', 'u' || n || '@example.com', 'First', 'Last', now() - interval '1 day'
        FROM generate_series({first}, {last}) n
    """)


@pytest.fixture(autouse=True)
def one_connection(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one connection, which keeps the plans that it has made."""
    monkeypatch.setenv("POINTS_DATABASE_CONNECTIONS_MAX", "1")
    forget_everything()


def _rows_read(table: str, work: Callable[[], object]) -> int:
    """Count the rows of a table that PostgreSQL goes through, in the table or by an index, while work is done."""
    before = _rows_read_so_far(table)
    work()
    return _rows_read_so_far(table) - before


def _rows_read_so_far(table: str) -> int:
    with transaction() as connection:
        connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
    return int(books.value(_READ, {"table": table}))


def _strangers(count: int) -> list[str]:
    return [f"stranger{number}@example.com" for number in range(count)]


def _insert_organizations_with_a_key(count: int) -> None:
    books.execute(
        f"INSERT INTO organizations (name) SELECT 'Other' FROM generate_series(1, {count})",
        "INSERT INTO api_keys (organization_id, sandbox, hash, start)"
        " SELECT id, false, sha256(id::text::bytea), 'pts_live' FROM organizations WHERE name = 'Other'"
        " ON CONFLICT DO NOTHING",
    )


def _send_and_read(organization_id: int) -> None:
    batch_id = books.issue_now(organization_id, [ANN], 1)
    with transaction() as connection:
        assert find_final(connection, [batch_id])[batch_id][0].status == "issued"


def test_a_send_goes_through_no_table_whose_rows_were_few_when_its_plans_were_made() -> None:
    organization_id = books.make_organization(10**6)
    _insert_organizations_with_a_key(60)
    _insert_users(1, 60)
    books.make_users(ANN)
    for _ in range(60):
        books.issue_now(organization_id, [ANN], 1)
    books.execute("ANALYZE")
    for _ in range(20):  # Until the plans are ones that are kept.
        _send_and_read(organization_id)
    _insert_organizations_with_a_key(MANY)
    _insert_users(61, MANY)
    books.issue_now(organization_id, _strangers(MANY), 1)
    for _ in range(200):
        books.queue_batch(organization_id, [ANN], 1)
    books.drain_all(organization_id)
    # A plan that goes through a table does so each time. Entries of an index that are dead, but that a statement of
    # autovacuum might still see at that moment, are gone through once.
    for table in ("users", "batches", "transactions", "organizations", "api_keys"):
        assert min(_rows_read(table, lambda: _send_and_read(organization_id)) for _ in range(3)) < 50, table


@races.first_of("few", [60, 1])
def test_a_retry_does_not_go_through_all_that_have_an_idempotency_key(few: int) -> None:
    organization_id = books.make_organization(10**6)
    for number in range(few):
        books.queue_batch(organization_id, [ANN], 1, idempotency_key=f"few-{number}")
    books.execute("ANALYZE")
    for number in range(20):  # Until the plans are ones that are kept.
        books.queue_batch(organization_id, [ANN], 1, idempotency_key=f"kept-{number}")
    for number in range(500):
        books.queue_batch(organization_id, [ANN], 1, idempotency_key=f"many-{number}")
    assert _rows_read("batches", lambda: _retry(organization_id, "many-250")) < 50


def _retry(organization_id: int, idempotency_key: str) -> None:
    request = IssueRequest(emails=[ANN], email_keys=[ANN], amount=1, atomic=False, label=None)
    with transaction() as connection:
        send = Send(books.key_of(connection, organization_id), request, idempotency_key)
        [accepted] = accept(connection, [send])
    assert isinstance(accepted, Acceptance)
    assert accepted.existed


@races.first_of("few", [60, 0])
def test_a_send_for_later_goes_through_no_more_than_what_is_scheduled_with_it(few: int) -> None:
    organization_id = books.make_organization(10**6)
    send_at = datetime.now(UTC) + timedelta(days=1)
    for _ in range(few):
        books.issue_now(organization_id, [ANN], 1)
    books.execute("ANALYZE")
    for _ in range(20):  # Until the plans are ones that are kept.
        books.queue_batch(organization_id, [ANN], 1, send_at=send_at)
    books.execute(
        "INSERT INTO batches (organization_id, sandbox, status, amount, atomic, recipient_count, emails, send_at)"
        " SELECT 1 + (n & 1), n & 1 = 0, 'scheduled', 1, false, 1, ARRAY['x'], now() FROM generate_series(1, 5000) n"
    )
    for _ in range(300):
        books.queue_batch(organization_id, [ANN], 1)
    books.drain_all(organization_id)
    with_it = _rows_read("batches", lambda: books.queue_batch(organization_id, [ANN], 1, send_at=send_at))
    assert with_it < 70


def test_a_drain_does_not_go_through_what_was_issued_though_it_was_still_queued_when_batches_were_analysed() -> None:
    organization_id = books.make_organization(10**6)
    books.execute(
        "INSERT INTO batches (organization_id, sandbox, status, amount, atomic, recipient_count, emails)"
        f" SELECT {organization_id}, false, 'queued', 1, false, 1, ARRAY['{ANN}'] FROM generate_series(1, {MANY})",
        "ANALYZE batches",
    )
    books.drain_all(organization_id)
    engine().dispose()  # Its plans are made anew, for the values that each statement is asked with.
    books.queue_batch(organization_id, [ANN], 1)
    assert _rows_read("batches", lambda: books.drain_all(organization_id)) < 50


def test_a_drain_and_a_release_go_through_nothing_that_is_scheduled() -> None:
    organization_id = books.make_organization(1_000)
    books.execute(
        "INSERT INTO batches (organization_id, sandbox, status, amount, atomic, recipient_count, emails, send_at)"
        f" SELECT {organization_id}, false, 'scheduled', 1, false, 1, ARRAY['{ANN}'],"
        f" now() + make_interval(days => 1, secs => n) FROM generate_series(1, {MANY}) n",
        "ANALYZE batches",
    )
    books.queue_batch(organization_id, [ANN], 1)
    for look in (books.drain_all, lambda _: books.run(schedule.release_due, at_most=100)):
        assert _rows_read("batches", partial(look, organization_id)) < 50


def test_the_look_for_crossed_registrations_goes_through_the_new_users_alone() -> None:
    organization_id = books.make_organization(10**6)
    _insert_users(1, MANY)
    books.issue_now(organization_id, _strangers(MANY), 1)
    books.make_users(ANN)
    books.execute("ANALYZE")
    for table in ("users", "transactions"):
        assert _rows_read(table, _look_for_crossed) < 50


def _look_for_crossed() -> None:
    assert books.run(claim_crossed, registered_within_s=60) == 0


def _register(newcomers: Sequence[users.NewUser]) -> None:
    books.run(register, newcomers)


def test_a_claim_goes_through_what_it_claims_though_nothing_was_held_when_transactions_were_analysed() -> None:
    books.make_users(ANN)
    organization_id = books.make_organization(10**9)
    for _ in range(200):
        books.queue_batch(organization_id, [ANN], 1)
    books.drain_all(organization_id)
    books.execute("ANALYZE transactions")
    books.issue_now(organization_id, _strangers(MANY), 1)
    newcomer = users.new_user("stranger7@example.com", "First", "Last")
    assert _rows_read("transactions", lambda: _register([newcomer])) < 50
    assert books.balance_of_user("stranger7@example.com") == 1


def _issue_own_amounts_after_many_of_one(organization_id: int, recipients: int) -> int:
    """Return a batch whose size PostgreSQL does not know: when it last looked, each batch had one recipient."""
    for _ in range(300):
        books.queue_batch(organization_id, [ANN], 1)
    books.drain_all(organization_id)
    books.execute("ANALYZE")
    return books.issue_now(organization_id, _strangers(recipients), [1 + number % 5 for number in range(recipients)])


def test_the_audit_does_not_compare_each_transaction_of_a_batch_with_all_its_items() -> None:
    organization_id = books.make_organization(10**6)
    _issue_own_amounts_after_many_of_one(organization_id, 20_000)
    with snapshot() as connection:  # A tenth of a second is enough; all compared with all takes 20 s for each rule.
        assert audit(connection, time_limit_s=10).breaches == []


def test_a_fold_goes_through_the_transactions_of_its_own_batches() -> None:
    books.make_users(ANN)
    organization_id = books.make_organization(10**9)
    books.issue_now(organization_id, _strangers(MANY), 1)
    for _ in range(400):
        books.queue_batch(organization_id, [ANN], 1)
    books.drain_all(organization_id)
    books.fold()
    books.execute("ANALYZE")
    books.issue_now(organization_id, [ANN], 1)
    assert _rows_read("transactions", books.fold) < 50
