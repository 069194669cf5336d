"""What is promised in an order comes in it whatever plan PostgreSQL makes: here it may use no index."""

from collections.abc import Sequence

import pytest

from app import api_keys, organizations
from app.batches.batch import find_final
from app.batches.transaction import transactions_of
from app.ledger import fold
from app.postgres.database import single_statement, transaction
from tests.conftest import Servers
from tests.integration import books
from tests.integration.plans import use_no_index

ANN, BOB, CEM, MALLORY = (f"{name}@example.com" for name in ("ann", "bob", "cem", "mallory"))


@pytest.fixture(autouse=True)
def no_index(database: None, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    use_no_index(servers, monkeypatch)


_UNFOLDED = "SELECT batch_id FROM unfolded_batches ORDER BY batch_id"


def _move(table: str, column: str, ids: Sequence[int]) -> None:
    """Put rows behind all others in their table, in this order: an updated row moves."""
    for number in ids:
        books.execute(f"UPDATE {table} SET {column} = {column} WHERE id = {number}")


def _three_batches() -> tuple[int, list[int]]:
    """Queue three batches, two of which the balance pays; the middle one lies last, the newest first."""
    organization_id = books.make_organization(20)
    ids = [books.queue_batch(organization_id, [ANN], 10) for _ in range(3)]
    _move("batches", "failures", [ids[0], ids[1]])
    return organization_id, ids


def _debited(organization_id: int, ids: Sequence[int]) -> list[int | None]:
    return [books.read_batch(organization_id, batch_id)[0].debited_count for batch_id in ids]


def test_the_oldest_batches_are_paid_and_announced_first() -> None:
    organization_id, ids = _three_batches()
    assert books.rounds_of(organization_id) == [ids]
    assert _debited(organization_id, ids) == [1, 1, 0]


def test_the_oldest_batches_are_paid_first_also_one_at_a_time() -> None:
    organization_id, ids = _three_batches()
    books.execute(f"ALTER TABLE transactions ADD CONSTRAINT poison CHECK (email <> '{MALLORY}')")
    try:
        books.queue_batch(organization_id, [MALLORY], 10)
        assert books.rounds_of(organization_id) == [[batch_id] for batch_id in ids]
    finally:
        books.execute("ALTER TABLE transactions DROP CONSTRAINT poison")
    assert _debited(organization_id, ids) == [1, 1, 0]


def test_the_transactions_of_a_batch_are_read_in_request_order() -> None:
    organization_id = books.make_organization(100)
    emails = [ANN, BOB, CEM]
    ids = [books.issue_now(organization_id, emails, 10) for _ in range(2)]
    books.make_users(BOB)
    books.make_users(ANN)  # A claimed row moves, too.
    with single_statement() as connection:
        together = find_final(connection, ids)
        for batch_id in ids:
            rows = transactions_of(connection, batch_id, organization_id=organization_id)
            assert [row.email for row in rows] == emails
            assert rows == together[batch_id][1]


def test_the_oldest_batches_are_folded_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "BATCHES_MAX", 1)
    books.make_users(ANN)
    organization_id = books.make_organization(100)
    ids = [books.issue_now(organization_id, [ANN], 10) for _ in range(3)]
    books.execute(f"UPDATE unfolded_batches SET batch_id = batch_id WHERE batch_id = {ids[0]}")
    left = []
    for _ in ids:
        with transaction() as connection:
            fold.fold(connection)
            left.append(list(connection.exec_driver_sql(_UNFOLDED).scalars()))
    assert left == [ids[1:], ids[2:], []]


def test_organizations_and_keys_are_listed_oldest_first() -> None:
    ids = [books.make_organization() for _ in range(3)]
    _move("organizations", "name", ids[:2])
    with transaction() as connection:
        keys = [api_keys.create(connection, ids[0], sandbox=False)[0] for _ in range(3)]
    _move("api_keys", "start", keys[:2])
    with transaction() as connection:
        assert [one.id for one in organizations.find_all(connection, sandbox=False)] == ids
        assert [one.id for one in api_keys.find_all(connection, ids[0])] == keys
