"""A second pair of eyes: what needs an approval is approved, rejected or cancelled, once, in its place in the queue."""

import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app import api_keys, organizations
from app.api_keys import Caller
from app.batches import approval, awaiting, schedule
from app.batches.accept import Acceptance, Send, SendingMember, accept
from app.batches.errors import ScheduledLimit
from app.batches.request import IssueRequest
from app.errors import BatchConflict, BatchNotIssued
from app.ledger import drain as draining
from app.postgres.database import single_statement, transaction
from app.reversals.accept import BatchAwaitsApproval
from app.scope import Scope
from tests.deadline import TIMEOUT_S, until
from tests.integration import books, races
from tests.integration.visitors import make_member

pytestmark = pytest.mark.usefixtures("database", "balanced")

ANN = "ann@example.com"
_DAY = timedelta(days=1)


def _organization(balance: int = 10_000, *, above: int = 0, of: str = "all") -> int:
    organization_id = books.make_organization(balance, sandbox_balance=balance)
    books.run(organizations.change, organization_id, {"approval_above": above, "approval_of": of})
    return organization_id


def _another(organization_id: int, *, sandbox: bool = False) -> Caller:
    """Return a caller with a key that has sent nothing."""
    with transaction() as connection:
        books.key_of(connection, organization_id, sandbox)  # Which sends, also afterwards.
        key_id, _ = api_keys.create(connection, organization_id, sandbox=sandbox)
        organization = organizations.get(connection, Scope(organization_id, sandbox=sandbox))
    return Caller(api_key_id=key_id, sandbox=sandbox, organization=organization)


def _approve(who: Caller, batch_id: int) -> bool:
    """Approve a batch; tell whether that was possible."""
    return _is_possible(approval.approve, who, batch_id)


def _reject(who: Caller, batch_id: int) -> bool:
    return _is_possible(approval.reject, who, batch_id, "The wrong list")


def _cancel(organization_id: int, batch_id: int) -> bool:
    return _is_possible(schedule.cancel, batch_id, Scope(organization_id, sandbox=False))


def _move(organization_id: int, batch_id: int, send_at: datetime) -> bool:
    return _is_possible(schedule.reschedule, batch_id, send_at, Scope(organization_id, sandbox=False))


def _is_possible(function: Callable[..., object], *args: Any, **kwargs: Any) -> bool:
    try:
        books.run(function, *args, **kwargs)
    except BatchConflict:
        return False
    return True


def _status(organization_id: int, batch_id: int, *, sandbox: bool = False) -> str:
    return books.read_batch(organization_id, batch_id, sandbox=sandbox)[0].status


def _free(organization_id: int) -> None:
    """Let sends of any size go without an approval."""
    books.run(organizations.change, organization_id, {"approval_above": None})


def _let_days_pass(days: int, batch_id: int) -> None:
    books.execute(
        f"UPDATE batches SET created_at = created_at - interval '{24 * days} hours' WHERE id = {batch_id}",
        books.DIGEST_BATCHES,
    )


def _reject_unanswered() -> int:
    return books.run(awaiting.reject_unanswered, at_most=100)


# --- What needs it ----------------------------------------------------------------------------------------------------


def _accept(organization_id: int, sender: bytes | SendingMember, amounts: list[int]) -> Acceptance:
    emails = [f"user{number}@example.com" for number in range(len(amounts))]
    is_one = len(set(amounts)) == 1
    totals = None if is_one else [sum(amounts[: place + 1]) for place in range(len(amounts))]
    request = IssueRequest(
        emails=emails,
        email_keys=emails,
        amount=amounts[0] if is_one else None,
        running_totals=totals,
        atomic=False,
        label=None,
    )
    [accepted] = books.run(accept, [Send(sender, request, None)])
    assert isinstance(accepted, Acceptance), accepted
    assert accepted.organization_id == organization_id
    return accepted


@pytest.mark.parametrize("sandbox", [False, True], ids=["live", "sandbox"])
def test_only_a_send_of_more_points_than_the_limit_awaits_an_approval_of_whom_it_is_for(sandbox: bool) -> None:
    organization_id = _organization(above=30, of="console")
    member = SendingMember(make_member(organization_id, "ann@example.org", "approver"), sandbox)
    key = books.run(books.key_of, organization_id, sandbox)
    above, queued = ([10, 10, 11], [31], [1, 30], [16, 16]), ([10, 10, 10], [30], [1, 29])
    for amounts in above:
        assert _accept(organization_id, member, amounts).status == "awaiting_approval"
        assert _accept(organization_id, key, amounts).status == "queued"
    for amounts in queued:
        assert _accept(organization_id, member, amounts).status == "queued"
    books.run(organizations.change, organization_id, {"approval_of": "all"})
    assert [_accept(organization_id, key, amounts).status for amounts in above] == ["awaiting_approval"] * 4
    assert [_accept(organization_id, key, amounts).status for amounts in queued] == ["queued"] * 3
    _free(organization_id)
    assert {_accept(organization_id, sender, [9_000]).status for sender in (member, key)} == {"queued"}
    with single_statement() as connection:
        assert awaiting.count_awaiting(connection, Scope(organization_id, sandbox=sandbox)) == 8
        assert awaiting.count_awaiting(connection, Scope(organization_id, sandbox=not sandbox)) == 0


def test_what_awaits_an_approval_moves_nothing_and_no_drain_or_release_takes_it() -> None:
    organization_id = _organization()
    late = books.queue_batch(organization_id, [ANN], 10, send_at=datetime.now(UTC) + _DAY)
    waiting = [books.queue_batch(organization_id, [ANN], 10), late]
    with transaction() as connection:
        assert schedule.release_due(connection, at_most=9) == []
        assert schedule.scheduled_of(connection, Scope(organization_id, sandbox=False)).batches == 0
    assert books.drain_all(organization_id) == []
    assert not books.has_due(organization_id)
    assert [_status(organization_id, one) for one in waiting] == ["awaiting_approval"] * 2
    assert books.balance_of(organization_id) == 10_000
    with pytest.raises(BatchAwaitsApproval):
        books.queue_reversal(organization_id, batch_id=late)
    assert _reject(_another(organization_id), late)
    with pytest.raises(BatchNotIssued):
        books.queue_reversal(organization_id, batch_id=late)
    for statement in ("status = 'issued'", "status = 'refused'", "send_at = now()", "approved_at = now()"):
        with pytest.raises(DBAPIError):
            books.execute(f"UPDATE batches SET {statement} WHERE id = {waiting[0]}")


# --- As if accepted then ----------------------------------------------------------------------------------------------


def test_what_is_approved_is_issued_in_the_place_of_its_approval() -> None:
    """Between them in one queue, each in a round of its own, so that the ids of one round rise with the balances."""
    organization_id = _organization(100)
    first, second = (books.queue_batch(organization_id, [ANN], 10) for _ in range(2))
    _free(organization_id)
    issued = books.issue_now(organization_id, [ANN], 10)
    before = books.queue_batch(organization_id, [ANN], 10)
    reversal_id = books.queue_reversal(organization_id, batch_id=issued)
    who = _another(organization_id)
    assert _approve(who, second)
    assert _approve(who, first)
    after = [books.queue_batch(organization_id, [ANN], 10) for _ in range(2)]
    assert books.rounds_of(organization_id) == [[before], [reversal_id], [second], [first], after]
    balances = [books.read_batch(organization_id, one)[0].current_balance for one in (before, second, first, *after)]
    assert balances == [80, 80, 70, 60, 50], "the reversal has given 10 back after the first"


def test_batches_tried_one_at_a_time_keep_the_place_of_their_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    organization_id = _organization(100)
    awaiting = books.queue_batch(organization_id, [ANN], 10)
    _free(organization_id)
    before = books.queue_batch(organization_id, [ANN], 10)
    assert _approve(_another(organization_id), awaiting)
    after = books.queue_batch(organization_id, [ANN], 10)

    real_round = draining._round

    def fail(_organization_id: int) -> None:
        monkeypatch.setattr(draining, "_round", real_round)
        raise RuntimeError("a batch is poison")

    monkeypatch.setattr(draining, "_round", fail)
    assert books.drain_all(organization_id) == [before, awaiting, after]


def test_no_approval_schedules_more_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    organization_id, tomorrow = _organization(), datetime.now(UTC) + _DAY
    who = _another(organization_id)
    one, other = (books.queue_batch(organization_id, [ANN], 10, send_at=tomorrow) for _ in range(2))
    monkeypatch.setattr(approval, "SCHEDULED_MAX", 1)
    assert _approve(who, one)
    with pytest.raises(ScheduledLimit):
        books.run(approval.approve, who, other)
    assert _status(organization_id, other) == "awaiting_approval"


# --- Nobody answers ---------------------------------------------------------------------------------------------------


def test_an_organization_whose_row_is_held_holds_up_no_other_rejection() -> None:
    held, other = _organization(), _organization()
    batch_ids = [books.queue_batch(one, [ANN], 10) for one in (held, other)]
    for one in batch_ids:
        _let_days_pass(8, one)
    with transaction() as connection:
        connection.execute(text("SELECT FROM organizations WHERE id = :id FOR NO KEY UPDATE"), {"id": held})
        assert [_reject_unanswered(), _reject_unanswered()] == [1, 0]
        assert _status(other, batch_ids[1]) == "rejected"
    assert _reject_unanswered() == 1


# --- At once ----------------------------------------------------------------------------------------------------------

# 500 of each kind passed too; they take a minute. Of each 30, two have an order that is made.
_RACES = 60


class _Race:
    """Batches that are approved in one thread while something else is done with each in another, and a third drains.

    The two meet at each batch. Of 30 batches the other is done first with one, and last, once it is issued, with one.
    """

    def __init__(self, organization_id: int, batch_ids: list[int], other: Callable[[int], bool]) -> None:
        self._organization_id, self._who = organization_id, _another(organization_id)
        self._batch_ids, self._other = batch_ids, other
        self._meet = threading.Barrier(2)
        self._asked = threading.Event()
        self._is_over = False
        self.approved: dict[int, bool] = {}
        self.done: dict[int, bool] = {}

    def run(self) -> None:
        races.at_once(self._approve_each, self._do_each, self._drain)
        books.drain_all(self._organization_id)

    def _approve_each(self) -> None:
        for number, batch_id in enumerate(self._batch_ids):
            self._wait(times=2 if number % 30 == 0 else 1)
            self.approved[batch_id] = _approve(self._who, batch_id)
            self._asked.set()
            if number % 30 == 1:
                until(lambda: _status(self._organization_id, batch_id) != "queued")  # noqa: B023  # It is awaited here.
                self._wait()

    def _do_each(self) -> None:
        for number, batch_id in enumerate(self._batch_ids):
            self._wait(times=2 if number % 30 == 1 else 1)
            self.done[batch_id] = self._other(batch_id)
            if number % 30 == 0:
                self._wait()
        self._is_over = True
        self._asked.set()

    def _drain(self) -> None:
        while not self._is_over:
            self._asked.wait(TIMEOUT_S)
            self._asked.clear()
            draining.drain(self._organization_id, announce=lambda *_: None)

    def _wait(self, *, times: int = 1) -> None:
        for _ in range(times):
            self._meet.wait(TIMEOUT_S)


def _awaiting(organization_id: int, send_at: datetime | None = None) -> list[int]:
    return [books.queue_batch(organization_id, [ANN], 1, send_at=send_at) for _ in range(_RACES)]


@pytest.mark.usefixtures("many_connections", "no_failure")
@races.first_of("way", ["rejected", "cancelled", "unanswered"])
def test_what_is_approved_while_it_is_called_off_ends_as_one_of_both(way: str) -> None:
    organization_id = _organization()
    batch_ids, other = _awaiting(organization_id), _another(organization_id)

    def reject_unanswered(batch_id: int) -> bool:
        books.execute(
            f"UPDATE batches SET created_at = created_at - interval '8 days' WHERE id = {batch_id}",
            f"{books.DIGEST_BATCHES} WHERE id = {batch_id}",
        )
        while _status(organization_id, batch_id) == "awaiting_approval":  # Whom an approver holds is passed over.
            _reject_unanswered()
        return _status(organization_id, batch_id) == "rejected"

    does: dict[str, Callable[[int], bool]] = {
        "cancelled": lambda batch_id: _cancel(organization_id, batch_id),
        "rejected": lambda batch_id: _reject(other, batch_id),
        "unanswered": reject_unanswered,
    }
    race = _Race(organization_id, batch_ids, does[way])
    race.run()
    statuses = {batch_id: _status(organization_id, batch_id) for batch_id in batch_ids}
    called_off = "cancelled" if way == "cancelled" else "rejected"
    assert set(statuses.values()) == {"issued", called_off}
    assert {one: status == called_off for one, status in statuses.items()} == race.done
    if way != "cancelled":  # What is approved can still be cancelled while it is queued.
        assert {one: status == "issued" for one, status in statuses.items()} == race.approved
    assert books.balance_of(organization_id) == 10_000 - Counter(statuses.values())["issued"]


@pytest.mark.usefixtures("many_connections", "no_failure")
def test_what_is_moved_while_it_is_approved_is_moved_after_that_or_not_at_all() -> None:
    organization_id, tomorrow = _organization(), datetime.now(UTC) + _DAY
    batch_ids = _awaiting(organization_id, tomorrow)
    race = _Race(organization_id, batch_ids, lambda batch_id: _move(organization_id, batch_id, tomorrow + _DAY))
    race.run()
    assert set(race.approved.values()) == {True}
    assert set(race.done.values()) == {True, False}
    for batch_id in batch_ids:
        batch = books.read_batch(organization_id, batch_id)[0]
        assert (batch.status, batch.send_at) == ("scheduled", tomorrow + race.done[batch_id] * _DAY)
