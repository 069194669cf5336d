"""The rows of batches: accepted under a key once, found by their own organization alone, and waiting in order."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from app.batches.accept import Acceptance, Send, accept
from app.batches.queue import Queued, count_queued, due_batches, organizations_waiting, postpone
from app.batches.request import IssueRequest
from app.errors import PointsError
from app.postgres.database import transaction
from tests.deadline import TIMEOUT_S
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"


REQUEST = IssueRequest(emails=[ANN, BOB], email_keys=[ANN, BOB], amount=10, atomic=False, label="Spring")


def _accept(
    organization_id: int, request: IssueRequest = REQUEST, *, sandbox: bool = False, key: str | None = "once"
) -> Acceptance | PointsError | None:
    with transaction() as connection:
        send = Send(books.key_of(connection, organization_id, sandbox), request, key)
    [outcome] = books.run(accept, [send])
    return outcome


def _accepted(organization_id: int, request: IssueRequest = REQUEST, **how: Any) -> Acceptance:
    outcome = _accept(organization_id, request, **how)
    assert isinstance(outcome, Acceptance), outcome
    return outcome


@pytest.mark.parametrize("fails", [False, True], ids=["committed", "rolled back"])
def test_a_send_whose_key_is_being_taken_waits_for_what_becomes_of_it(*, fails: bool) -> None:
    organization_id = books.make_organization()
    _accepted(organization_id, key="another")
    with races.started() as start:
        with transaction() as connection:
            [first] = accept(connection, [Send(books.key_of(connection, organization_id), REQUEST, "once")])
            second = start(partial(_accept, organization_id))
            races.until_waiting()
            if fails:
                connection.rollback()
        outcome = second.result(TIMEOUT_S)
    assert isinstance(first, Acceptance)
    if fails:
        assert isinstance(outcome, Acceptance)
        assert not outcome.existed
    else:
        assert outcome is None
        assert _accepted(organization_id).batch_id == first.batch_id


def _waiting(longer_than_s: float) -> list[int]:
    return books.run(organizations_waiting, longer_than_s=longer_than_s)


def test_a_clock_that_was_set_back_hides_no_batch_from_drain_or_sweep() -> None:
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(2)]
    books.run(postpone, queued[1], organization_id=organization_id)
    later = "created_at = created_at + interval '1 hour', retry_at = retry_at + interval '1 hour'"
    books.execute(f"UPDATE batches SET {later}")
    assert _waiting(longer_than_s=3) == [organization_id]
    assert books.run(count_queued) == Queued(batches=2, reversals=0, oldest_s=0.0)
    assert books.drain_all(organization_id) == queued


def test_an_organization_with_the_last_id_of_32_bits_has_due_batches_as_any_other() -> None:
    books.execute(f"ALTER SEQUENCE organizations_id_seq RESTART WITH {2**31 - 1}")
    organization_id = books.make_organization(100)
    assert organization_id == 2**31 - 1
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(2)]
    assert books.has_due(organization_id)
    with transaction() as connection:
        assert [one.id for one in due_batches(connection, organization_id, at_most=9)] == queued


def test_the_sweep_asks_for_each_organization_whose_batches_have_waited_too_long_once() -> None:
    late, early, none = (books.make_organization(100) for _ in range(3))
    for _ in range(2):
        books.queue_batch(late, [ANN], 1)
    books.queue_batch(early, [ANN], 1)
    books.execute(f"UPDATE batches SET created_at = now() - interval '10 s' WHERE organization_id = {late}")
    assert _waiting(5) == [late]
    assert _waiting(0) == [late, early]
    books.drain_all(late)
    assert _waiting(0) == [early]
    assert none not in _waiting(0)


def test_a_batch_that_is_final_cannot_be_postponed() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.issue_now(organization_id, [ANN], 1)
    with transaction() as connection:
        postpone(connection, batch_id, organization_id=organization_id)
        statement = text("SELECT failures, retry_at FROM batches")
        assert connection.execute(statement).one() == (0, None)
