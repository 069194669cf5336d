"""Forgetting idempotency keys: kept for as long as the contract promises, then given back in small steps."""

import pytest

from app.batches import read as batches
from app.batches.accept import Send, accept
from app.batches.request import IssueRequest
from app.errors import IdempotencyKeyReused
from app.postgres.database import transaction
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

ANN = "ann@example.com"


def _forget(*, at_most: int = 100) -> int:
    with transaction() as connection:
        return batches.forget_idempotency_keys(
            connection, older_than_days=batches.IDEMPOTENCY_KEY_KEPT_DAYS, at_most=at_most
        )


def _is_known(organization_id: int, key: str) -> bool:
    """Ask with a request that nobody has made: only a key that names a batch refuses it. Nothing is kept."""
    request = IssueRequest(emails=[ANN], email_keys=[ANN], amount=99, atomic=False, label=None)
    with transaction() as connection:
        [outcome] = accept(connection, [Send(books.key_of(connection, organization_id), request, key)])
        connection.rollback()
    return isinstance(outcome, IdempotencyKeyReused)


def _age(interval: str) -> None:
    """Let everything that was done to the batches have been done so much earlier."""
    moments = ", ".join(f"{moment} = {moment} - interval '{interval}'" for moment in ("created_at", "issued_at"))
    books.execute(*books.WITHOUT_GUARDS, f"UPDATE batches SET {moments}", *books.WITH_GUARDS)


def test_a_key_is_known_for_30_days_and_forgotten_some_time_after() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 1, idempotency_key="once")
    books.drain_all(organization_id)
    _age("30 days 1 hour")
    assert _forget() == 0
    assert _is_known(organization_id, "once")
    _age("1 day")
    assert _forget() == 1
    assert not _is_known(organization_id, "once")
    assert _forget() == 0


def test_the_key_of_a_batch_that_is_still_queued_is_never_forgotten() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 1, idempotency_key="once")
    _age("1 year")
    assert _forget() == 0
    assert _is_known(organization_id, "once")


def test_keys_are_forgotten_oldest_first_and_so_many_at_a_time() -> None:
    organization_id = books.make_organization(100)
    for key in ("c", "b", "a"):
        books.queue_batch(organization_id, [ANN], 1, idempotency_key=key)
    books.drain_all(organization_id)
    books.execute(
        *books.WITHOUT_GUARDS,
        "UPDATE batches SET issued_at = now() - make_interval(days => 40 + id::int)",  # "a" is the oldest.
        *books.WITH_GUARDS,
    )
    assert _forget(at_most=2) == 2
    assert [_is_known(organization_id, key) for key in ("a", "b", "c")] == [False, False, True]
    assert _forget(at_most=2) == 1


def test_a_batch_whose_key_is_forgotten_stays_as_it_was_issued() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 1, idempotency_key="once")
    books.drain_all(organization_id)
    before = books.read_batch(organization_id, batch_id)[1]
    _age("1 year")
    _forget()
    assert books.read_batch(organization_id, batch_id)[1] == before
    assert books.breaches() == []
