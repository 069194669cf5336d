"""What is held with an end: who may claim it until when, and what is returned, under the locks."""

from collections.abc import MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import users
from app.errors import CannotExtend
from app.ledger import claim
from app.ledger.returns import due_returns, extend, return_held
from app.messaging.worker_counters import RETURNED_POINTS
from app.postgres.database import transaction
from app.scope import Scope
from app.values.ids import POSITIONS
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("many_connections", "balanced")

ANN, BOB, CID = (f"{name}@example.com" for name in ("ann", "bob", "cid"))


def _extend(organization_id: int, transaction_id: int, days: int, *, sandbox: bool = False) -> None:
    until = datetime.now(UTC) + timedelta(days=days)
    books.run(extend, transaction_id, until, Scope(organization_id, sandbox))


def _states(organization_id: int, batch_id: int, *, sandbox: bool = False) -> list[str]:
    _, rows = books.read_batch(organization_id, batch_id, sandbox=sandbox)
    return ["returned" if row.returned else "credited" if row.credited else "held" for row in rows]


def _hold(*, sandbox: bool = False) -> tuple[int, int]:
    """Issue 10 points to each of three without an account, held for 5 days; return the organization and the batch."""
    organization_id = books.make_organization(30, sandbox_balance=30)
    batch_id = books.issue_now(organization_id, [ANN, BOB, CID], 10, sandbox=sandbox, hold_days=5)
    return organization_id, batch_id


def test_what_cannot_be_claimed_hides_nothing_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "CLAIM_STEP", 1)
    monkeypatch.setattr(claim, "CLAIM_ROWS_MAX", 1)
    organization_id, _ = _hold()
    books.let_days_pass(9)
    books.issue_now(organization_id, [BOB], 10)
    books.make_users(ANN, BOB)
    later = books.issue_now(books.make_organization(7), [BOB, ANN], 3)
    books.rewrite(
        f"UPDATE transactions SET credited = false, user_id = NULL WHERE batch_id = {later}",
        f"UPDATE unnumbered_events SET credited = 0 WHERE batch_id = {later}",
        books.KEEP_HELD,
    )
    books.fold()
    books.claim_crossed()
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (3, 3)


@pytest.mark.parametrize("sandbox", [False, True])
def test_what_is_unclaimed_goes_back_by_one_reversal_of_its_batch(
    sandbox: bool, events: list[MutableMapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Any] = []
    monkeypatch.setattr("worker.upkeep.count", counted.append)
    organization_id, batch_id = _hold(sandbox=sandbox)
    books.reverse_now(organization_id, transaction_ids=[batch_id * POSITIONS], amount=4, sandbox=sandbox)
    books.reverse_now(organization_id, transaction_ids=[batch_id * POSITIONS + 1], sandbox=sandbox)
    books.return_unclaimed()
    assert books.balance_of(organization_id, sandbox=sandbox) == 14
    books.let_days_pass(5)
    books.set_flags(organization_id, is_disabled=True)
    for _ in range(2):
        books.return_unclaimed()
    assert books.balance_of(organization_id, sandbox=sandbox) == 30
    assert _states(organization_id, batch_id, sandbox=sandbox) == ["returned", "held", "returned"]
    with transaction() as connection:
        heads = connection.exec_driver_sql(
            "SELECT id, batch_id, reason, api_key_id, reversed_amount, current_balance FROM reversals WHERE is_return"
        ).all()
    [(reversal_id, *head)] = heads
    assert head == [batch_id, "unclaimed", None, 16, 30]
    assert books.entries_of(reversal_id) == [(6, None), (10, None)]
    assert counted == [{RETURNED_POINTS.field("sandbox" if sandbox else "live"): 16}]
    [told] = [event for event in events if event["event"] == "returned"]
    assert (told["reversal_ids"], told["transactions"], told["points"]) == ([reversal_id], 2, 16)


def test_what_is_extended_is_returned_at_its_own_end() -> None:
    organization_id, batch_id = _hold()
    _extend(organization_id, batch_id * POSITIONS + 1, 8)
    books.let_days_pass(6)
    books.return_unclaimed()
    assert _states(organization_id, batch_id) == ["returned", "held", "returned"]
    _extend(organization_id, batch_id * POSITIONS + 1, 9)
    books.let_days_pass(3)
    books.return_unclaimed()
    assert _states(organization_id, batch_id) == ["returned", "held", "returned"]
    assert books.breaches() == []
    books.let_days_pass(7)
    books.return_unclaimed()
    assert _states(organization_id, batch_id) == ["returned"] * 3
    assert books.balance_of(organization_id) == 30


def test_a_batch_of_which_nothing_is_held_any_more_is_looked_at_once() -> None:
    organization_id, batch_id = _hold()
    books.make_users(ANN, BOB)
    books.reverse_now(organization_id, transaction_ids=[batch_id * POSITIONS + 2])
    books.let_days_pass(5)
    books.return_unclaimed()
    with transaction() as connection:
        assert due_returns(connection, at_most=10) == []
        assert connection.exec_driver_sql("SELECT count(*) FROM reversals WHERE is_return").scalar_one() == 0


def test_what_is_due_beyond_one_step_is_returned_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ledger.returns.BATCHES_MAX", 1)
    organization_id, batch_id = _hold()
    batch_ids = [batch_id]
    for _ in range(2):
        books.refill_now(organization_id, 30)
        batch_ids.append(books.issue_now(organization_id, [ANN, BOB, CID], 10, hold_days=5))
    books.let_days_pass(5)
    books.return_unclaimed()
    assert [_states(organization_id, one) for one in batch_ids] == [["returned"] * 3] * 3
    assert books.balance_of(organization_id) == 90


def test_points_that_the_balance_cannot_hold_are_returned_later() -> None:
    organization_id, batch_id = _hold()
    books.refill_now(organization_id, 2**63 - 10)
    books.let_days_pass(5)
    books.return_unclaimed()
    assert _states(organization_id, batch_id) == ["held"] * 3
    assert books.breaches() == []
    books.issue_now(organization_id, [ANN], 100)
    books.return_unclaimed()
    assert _states(organization_id, batch_id) == ["held"] * 3, "it has its turn in an hour"
    books.let_days_pass(1)
    books.return_unclaimed()
    assert _states(organization_id, batch_id) == ["returned"] * 3


def test_a_registration_that_comes_first_keeps_the_points() -> None:
    organization_id, batch_id = _hold()
    with races.started() as start:
        with transaction() as connection:
            claim.register(connection, [users.new_user(ANN, "Ann", "")])
            extending = start(lambda: _extend(organization_id, batch_id * POSITIONS, 9))
            races.until_waiting()
        with pytest.raises(CannotExtend):
            extending.result()
    assert books.balance_of_user(ANN) == 10
    books.let_days_pass(5)
    books.return_unclaimed()
    assert (books.balance_of_user(ANN), books.balance_of(organization_id)) == (10, 20)


def test_a_registration_that_crosses_a_return_finds_nothing_held() -> None:
    organization_id, _ = _hold()
    books.let_days_pass(5)
    with races.started() as start:
        with transaction() as connection:
            returned = return_held(connection, due_returns(connection, at_most=10))
            assert returned is not None
            assert [one.points for one in returned] == [30]
            registering = start(lambda: books.make_users(ANN))
            other = start(books.return_unclaimed)  # Another worker's leaves it alone.
            other.result()
            races.until_waiting()
        registering.result()
    assert (books.balance_of_user(ANN), books.balance_of(organization_id)) == (0, 30)


def test_an_organization_whose_row_is_locked_holds_up_no_other() -> None:
    one, batch_id = _hold()
    other, its = _hold()
    books.let_days_pass(5)
    with transaction() as connection:
        connection.exec_driver_sql(f"SELECT FROM organizations WHERE id = {one} FOR UPDATE")
        books.return_unclaimed()
    assert (_states(one, batch_id), _states(other, its)) == (["held"] * 3, ["returned"] * 3)
    books.return_unclaimed()
    assert _states(one, batch_id) == ["returned"] * 3


@pytest.mark.usefixtures("no_failure")
@races.first_of("attempt", range(3))
def test_returns_reversals_registrations_extensions_and_issues_at_once_move_every_point_once(attempt: int) -> None:
    organization_id = books.make_organization(100_000)
    emails = [f"{attempt}-{n}@example.com" for n in range(20)]
    ids = [books.issue_now(organization_id, emails, 10, hold_days=5) for _ in range(4)]
    books.let_days_pass(5)
    ids += [books.issue_now(organization_id, emails, 10, hold_days=5) for _ in range(2)]
    for batch_id in ids[::2]:
        books.queue_reversal(organization_id, batch_id=batch_id, amount=3)
        books.queue_batch(organization_id, emails[::-1], 10, hold_days=1)
    before = books.deadlocks()

    def extend_some() -> None:
        for place in range(20):
            try:
                _extend(organization_id, ids[-1] * POSITIONS + place, 9)
            except CannotExtend:
                continue

    races.at_once(
        lambda: books.drain_all(organization_id),
        books.return_unclaimed,
        books.return_unclaimed,
        extend_some,
        lambda: books.make_users(*emails[:15]),
        books.fold,
        books.claim_crossed,
    )
    books.drain_all(organization_id)
    books.return_unclaimed()
    assert all(_states(organization_id, batch_id) == ["returned"] * 20 for batch_id in ids[:4])
    assert books.breaches() == []
    assert books.deadlocks() == before
