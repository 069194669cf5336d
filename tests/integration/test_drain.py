"""Drains: rounds, their caps, and that they decide as verify does."""

import time
from collections.abc import MutableMapping
from itertools import accumulate
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from app.batches import read as batches
from app.batches.request import IssueRequest
from app.ledger import drain, issue
from app.postgres.connections import LOCK_TIMEOUT_MS
from app.postgres.database import transaction
from app.settings import INT64_MAX
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"


# As the service has it; for the tests here it is longer.
_DRAINS_LOCK_TIMEOUT_MS = issue._LOCK_TIMEOUT_MS


def test_a_batch_delivered_twice_is_found_issued_under_the_lock_and_left_alone() -> None:
    organization_id = books.make_organization(100)
    books.make_users(ANN)
    batch_id = books.issue_now(organization_id, [ANN, BOB], 10)
    before = books.read_batch(organization_id, batch_id)
    with transaction() as connection:
        assert books.issue(connection, organization_id, only=batch_id) == []
        assert books.issue(connection, organization_id) == []
    assert books.read_batch(organization_id, batch_id) == before
    assert books.balance_of_user(ANN) == 10
    assert books.breaches() == []


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["is_disabled"], "organization_disabled"),
        (["is_suspended"], "organization_suspended"),
        (["is_disabled", "is_suspended"], "organization_disabled"),
    ],
)
def test_what_an_organization_may_not_issue_is_refused_for_good_and_writes_nothing(flags: list[str], code: str) -> None:
    organization_id = books.make_organization(100, sandbox_balance=100)
    books.make_users(ANN)
    queued = {sandbox: books.queue_batch(organization_id, [ANN], 10, sandbox=sandbox) for sandbox in (False, True)}
    books.set_flags(organization_id, **dict.fromkeys(flags, True))
    assert books.drain_all(organization_id) == list(queued.values())
    books.set_flags(organization_id, **dict.fromkeys(flags, False))
    assert books.drain_all(organization_id) == []
    for sandbox, batch_id in queued.items():
        with transaction() as connection:
            assert books.issue(connection, organization_id, only=batch_id) == []
        batch, transactions = books.read_batch(organization_id, batch_id, sandbox=sandbox)
        assert (batch.status, batch.refusal, batch.issued_at, transactions) == ("refused", code, None, [])
        assert books.balance_of(organization_id, sandbox=sandbox) == 100
    assert books.balance_of_user(ANN) == 0
    assert books.breaches() == []


def test_a_round_takes_no_more_batches_than_its_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issue, "BATCHES_MAX", 2)
    organization_id = books.make_organization(100)
    a, b, c, d, e = [books.queue_batch(organization_id, [ANN], 1) for _ in range(5)]
    assert books.rounds_of(organization_id) == [[a, b], [c, d], [e]]
    assert books.breaches() == []


def test_a_round_takes_no_more_recipients_than_its_cap_but_always_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issue, "RECIPIENTS_MAX", 3)
    organization_id = books.make_organization(100)
    a, b, c, d, e = [
        books.queue_batch(organization_id, [f"{n}@example.com" for n in range(count)], 1) for count in (2, 2, 1, 5, 1)
    ]
    assert books.rounds_of(organization_id) == [[a], [b, c], [d], [e]]
    assert books.breaches() == []


def test_a_drain_that_reached_its_rounds_says_that_more_may_be_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issue, "BATCHES_MAX", 1)
    monkeypatch.setattr(drain, "ROUNDS_MAX", 2)
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(3)]
    announced: list[int] = []
    assert drain.drain(organization_id, announce=lambda batch_ids, *_: announced.extend(batch_ids)) is True
    assert announced == queued[:2]
    assert books.read_batch(organization_id, queued[2])[0].status == "queued"
    assert drain.drain(organization_id, announce=lambda batch_ids, *_: announced.extend(batch_ids)) is False
    assert announced == queued


def test_batches_are_announced_only_when_everybody_can_see_them_issued() -> None:
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(2)]
    seen: list[list[int]] = []

    def look(announced: object, *_: object) -> None:
        with transaction() as connection:
            seen.append(sorted(batches.final_among(connection, queued)))
        assert announced == queued

    drain.drain(organization_id, announce=look)
    assert seen == [queued]


def test_a_row_that_somebody_else_holds_is_no_fault_of_the_batches_and_holds_up_no_other_organization(
    events: list[MutableMapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 10) for _ in range(3)]
    monkeypatch.setattr(issue, "_LOCK_TIMEOUT_MS", _DRAINS_LOCK_TIMEOUT_MS)
    with transaction() as somebody:
        somebody.exec_driver_sql(f"SELECT FROM organizations WHERE id = {organization_id} FOR UPDATE")
        began = time.monotonic()
        assert [books.rounds_of(organization_id) for _ in range(10)] == [[]] * 10
        assert time.monotonic() - began < LOCK_TIMEOUT_MS / 1_000, "not one of them waits as long as a refill would"
        assert [event["event"] for event in events] == ["organization_locked"]
        assert events[0]["sqlstate"] == "55P03"
    later = time.monotonic() + 10
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert books.rounds_of(organization_id) == [queued]


def test_a_long_drain_makes_room_for_other_organizations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issue, "BATCHES_MAX", 1)
    monkeypatch.setattr(drain, "_TURN_S", 0.0)
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(3)]
    announced: list[int] = []
    more = [drain.drain(organization_id, announce=lambda batch_ids, *_: announced.extend(batch_ids)) for _ in queued]
    assert more == [True, True, False]
    assert announced == queued


_FAR_BEYOND_FLOATS = 2**60


class _Send(NamedTuple):
    sandbox: bool
    amounts: list[int]
    is_uniform: bool
    atomic: bool


# Also amounts of which a balance pays two and almost, or just, a third.
amounts = st.one_of(st.integers(1, 50), st.integers(-3, 3).map(lambda more: INT64_MAX // 3 + more))


uniform = st.tuples(amounts, st.integers(1, 4)).map(lambda drawn: [drawn[0]] * drawn[1])


items = st.lists(amounts, min_size=1, max_size=6)


def _of(drawn: tuple[bool, list[int], bool, bool]) -> _Send:
    sandbox, amounts, is_uniform, atomic = drawn
    return _Send(sandbox, amounts, is_uniform and len(set(amounts)) == 1, atomic)


sends = (
    st.tuples(st.booleans(), st.one_of(uniform, items), st.booleans(), st.booleans())
    .map(_of)
    .filter(lambda send: sum(send.amounts) <= INT64_MAX)  # Else it is no request.
)


balances = st.one_of(st.integers(0, 500), st.integers(0, 10).map(lambda less: INT64_MAX - less))


def _request(send: _Send) -> IssueRequest:
    emails = [ANN] * len(send.amounts)
    return IssueRequest(
        emails=emails,
        email_keys=emails,
        amount=send.amounts[0] if send.is_uniform else None,
        running_totals=None if send.is_uniform else list(accumulate(send.amounts)),
        atomic=send.atomic,
        label=None,
    )


def _paid_by_a_loop(amounts: list[int], balance: int) -> int:
    for count, amount in enumerate(amounts):
        if amount > balance:
            return count
        balance -= amount
    return len(amounts)


@effort(
    max_examples=60,
    deadline=None,
    # The fixtures stay for all examples; each example empties the tables itself.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(balance=balances, sandbox_balance=balances, queue=st.lists(sends, min_size=1, max_size=8))
def test_a_drain_pays_what_verify_says(balance: int, sandbox_balance: int, queue: list[_Send]) -> None:
    books.empty()
    organization_id = books.make_organization(balance, sandbox_balance=sandbox_balance)
    left = {False: balance, True: sandbox_balance}
    expected = []
    for send in queue:
        emails = [ANN] * len(send.amounts)
        amount = send.amounts[0] if send.is_uniform else send.amounts
        batch_id = books.queue_batch(organization_id, emails, amount, sandbox=send.sandbox, atomic=send.atomic)
        count = _request(send).paid_by(left[send.sandbox])
        assert count == _paid_by_a_loop(send.amounts, left[send.sandbox])
        if send.atomic and count < len(send.amounts):
            count = 0
        left[send.sandbox] -= sum(send.amounts[:count])
        expected.append((batch_id, count, left[send.sandbox]))
    books.drain_all(organization_id)
    seen = []
    for (batch_id, _, _), send in zip(expected, queue, strict=True):
        batch, _ = books.read_batch(organization_id, batch_id, sandbox=send.sandbox)
        assert batch.status == batches.ISSUED
        seen.append((batch_id, batch.debited_count, batch.current_balance))
    assert seen == expected
    assert books.balance_of(organization_id) == left[False]
    assert books.balance_of(organization_id, sandbox=True) == left[True]


def test_more_than_a_float_can_tell_apart_is_paid_to_the_point() -> None:
    amount = _FAR_BEYOND_FLOATS + 1
    poor, rich = books.make_organization(3 * amount - 1), books.make_organization(3 * amount)
    paid = []
    for organization_id in (poor, rich):
        batch_id = books.issue_now(organization_id, [ANN] * 3, amount)
        paid.append(books.read_batch(organization_id, batch_id)[0].debited_count)
    assert paid == [2, 3]
