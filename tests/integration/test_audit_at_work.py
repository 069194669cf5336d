"""The audit beside the service at work: it sees one moment, waits for nobody, and finds nothing wrong."""

from functools import partial
from inspect import unwrap

import pytest
from sqlalchemy.exc import InternalError, OperationalError

from app import users
from app.audit.run import BREACHES_SHOWN_MAX, Audit, audit
from app.cli.operating import audit as audit_command
from app.events.sequencer import drop_old_events
from app.ledger import sandbox
from app.ledger.refill import refill
from app.postgres.database import snapshot, transaction
from tests.conftest import forget_everything
from tests.deadline import TIMEOUT_S
from tests.integration import books, races
from tests.integration.logs_of_events import events_of, number_all

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"
_A_USER = books.and_told(
    f"INSERT INTO users (email, email_key, first_name, last_name) VALUES ('{ANN}', '{ANN}', 'A', 'N')"
)


def _audit() -> Audit:
    with snapshot() as connection:
        return audit(connection)


def test_an_audit_counts_what_it_looked_at() -> None:
    organization_id = books.make_organization(100)
    books.make_organization()
    books.make_users(ANN, BOB, "cid@example.com")
    books.issue_now(organization_id, [ANN, BOB], 10)
    books.queue_batch(organization_id, [ANN], 10)
    seen = _audit()
    assert (seen.organizations, seen.users, seen.batches, seen.transactions) == (2, 3, 2, 2)


def test_a_breach_says_what_was_seen() -> None:
    organization_id = books.make_organization(100)
    books.issue_now(organization_id, [ANN], 10)
    books.execute("UPDATE organizations SET balance = 95")
    assert [breach.seen for breach in books.breaches()] == [
        "refills 100, debits 10, taken back 0, balance 95",
        "a balance of 95 that nothing has left",
    ]


def test_an_audit_shows_so_many_breaches_of_a_rule_and_no_more() -> None:
    books.make_users(*[f"{n}@example.com" for n in range(BREACHES_SHOWN_MAX + 1)])
    books.execute("INSERT INTO user_balances SELECT id, 1, 1 FROM users")
    assert [breach.subject for breach in books.breaches()] == [f"user {n}" for n in range(1, BREACHES_SHOWN_MAX + 1)]
    assert audit_command.callback is not None
    said = str(unwrap(audit_command.callback)()._sentence).splitlines()
    assert said[-1].startswith(f"The books do not balance: at least {BREACHES_SHOWN_MAX} breaches in ")


@pytest.mark.parametrize("old", [[], ["users.created_at"], ["batches.issued_at"]], ids=["none", "user", "batch"])
def test_points_held_by_a_crossing_that_the_sweep_has_yet_to_see_are_no_breach(old: list[str]) -> None:
    books.issue_now(books.make_organization(100), [ANN], 10)
    books.execute(_A_USER)
    for table, column in (one.split(".") for one in old):
        books.execute(
            f"ALTER TABLE {table} DISABLE TRIGGER USER",
            f"UPDATE {table} SET {column} = {column} - interval '1 hour'",
            books.DIGEST_BATCHES,
            f"ALTER TABLE {table} ENABLE TRIGGER USER",
        )
    assert books.breaches() == []


def test_what_is_held_in_the_sandbox_stays_so_and_is_no_breach() -> None:
    books.issue_now(books.make_organization(sandbox_balance=100), [ANN], 10, sandbox=True)
    books.make_users(ANN)
    books.execute(
        "ALTER TABLE batches DISABLE TRIGGER USER",
        "UPDATE batches SET issued_at = issued_at - interval '1 hour'",
        books.DIGEST_BATCHES,
        "ALTER TABLE batches ENABLE TRIGGER USER",
        "UPDATE users SET created_at = created_at - interval '1 hour'",
    )
    assert books.breaches() == []


def test_a_claim_in_the_sandbox_whose_event_is_dropped_is_no_breach() -> None:
    organization_id = books.make_organization(100, sandbox_balance=100)
    books.issue_now(organization_id, [ANN], 10, sandbox=True)
    books.run(sandbox.register, organization_id, users.new_user(ANN, "A", "N"))
    number_all()
    while books.run(drop_old_events, older_than_days=0, at_most=100):
        pass
    assert events_of(organization_id, sandbox=True) == []
    assert books.breaches() == []


def _sleep_in_each_rule(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    slow = f"SELECT pg_sleep({seconds})::text AS subject, '' AS seen"
    monkeypatch.setattr("app.audit.run.RULES", {"one": slow, "another": slow, "a third": slow})


def test_the_time_of_an_audit_is_that_of_all_its_rules_together(monkeypatch: pytest.MonkeyPatch) -> None:
    _sleep_in_each_rule(monkeypatch, 0.4)
    with pytest.raises(OperationalError, match="timeout"), snapshot() as connection:
        audit(connection, time_limit_s=1)


def test_an_audit_without_a_limit_takes_longer_than_any_request_may(monkeypatch: pytest.MonkeyPatch) -> None:
    _sleep_in_each_rule(monkeypatch, 0.4)
    monkeypatch.setattr("app.postgres.connections.ANSWER_TIMEOUT_S", 0.3)
    monkeypatch.setattr("app.postgres.connections.STATEMENT_TIMEOUT_MS", 300)
    forget_everything()  # The next connections are made with it.
    assert len(books.breaches()) == 3


def test_an_audit_waits_for_no_lock_and_nothing_waits_for_it() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 10)
    with races.started() as start, transaction() as connection:
        books.issue(connection, organization_id)
        assert start(_audit).result(TIMEOUT_S).breaches == []
    with races.started() as start, snapshot() as connection:
        audit(connection)
        assert start(partial(books.issue_now, organization_id, [ANN], 10)).result(TIMEOUT_S) == 2


def test_every_rule_sees_the_same_moment_whatever_is_committed_meanwhile() -> None:
    organization_id = books.make_organization(100)
    with races.before_statement("FROM refills", partial(books.issue_now, organization_id, [ANN], 10)):
        assert _audit() == Audit(organizations=1, users=0, batches=0, transactions=0, breaches=[])
    assert _audit().transactions == 1


def test_an_audit_can_write_nothing() -> None:
    books.make_organization(100)
    with snapshot() as connection, pytest.raises(InternalError, match="read-only"):
        connection.exec_driver_sql("UPDATE organizations SET balance = 0")


def test_audits_during_sends_refills_registrations_and_claims_find_nothing() -> None:
    emails = [f"{n}@example.com" for n in range(30)]
    organization_ids = [books.make_organization(500, sandbox_balance=500) for _ in range(2)]
    done: list[int] = []

    def send_often(organization_id: int) -> int:
        for n in range(30):
            books.issue_now(organization_id, emails[n % 7 :: 2], 3, sandbox=n % 3 == 0)
            books.run(refill, organization_id, 20)
        done.append(organization_id)
        return 0

    def register_all() -> int:
        for email in emails:
            books.make_users(email)
            books.claim_crossed()
        return 0

    def audit_until_done() -> int:
        audits = 0
        while len(done) < 2:
            assert books.breaches() == []
            audits += 1
        return audits

    calls = [partial(send_often, organization_id) for organization_id in organization_ids]
    *_, audits = races.at_once(*calls, register_all, audit_until_done)
    assert audits > 1
    assert books.breaches() == []
