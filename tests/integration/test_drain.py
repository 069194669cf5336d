"""Drains: rounds, their caps, and that they decide as verify does."""

import time
from collections.abc import MutableMapping
from typing import Any

import pytest

from app.batches.batch import final_among
from app.ledger import drain, issue
from app.postgres.connections import LOCK_TIMEOUT_MS
from app.postgres.database import transaction
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


def test_a_round_takes_no_more_batches_than_its_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issue, "BATCHES_MAX", 2)
    organization_id = books.make_organization(100)
    a, b, c, d, e = [books.queue_batch(organization_id, [ANN], 1) for _ in range(5)]
    assert books.rounds_of(organization_id) == [[a, b], [c, d], [e]]
    assert books.breaches() == []


def test_a_round_takes_no_more_recipients_than_its_cap_but_always_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issue, "RECIPIENTS_AT_ONCE", 3)
    organization_id = books.make_organization(100)
    a, b, c, d, e = [
        books.queue_batch(organization_id, [f"{n}@example.com" for n in range(count)], 1) for count in (2, 2, 1, 5, 1)
    ]
    assert books.rounds_of(organization_id) == [[a], [b, c], [d], [e]]
    assert books.breaches() == []


@pytest.mark.parametrize(("limit", "most", "taken"), [("ROUNDS_MAX", 2, [2, 1]), ("_TURN_S", 0.0, [1, 1, 1])])
def test_a_drain_whose_rounds_or_turn_are_over_makes_room_and_says_that_more_may_be_waiting(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: float, taken: list[int]
) -> None:
    monkeypatch.setattr(issue, "BATCHES_MAX", 1)
    monkeypatch.setattr(drain, limit, most)
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(3)]
    announced: list[int] = []
    for place in range(len(taken)):
        is_more = drain.drain(organization_id, announce=lambda batch_ids, *_: announced.extend(batch_ids))
        assert (is_more, announced) == (place < len(taken) - 1, queued[: sum(taken[: place + 1])])


def test_batches_are_announced_only_when_everybody_can_see_them_issued() -> None:
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(2)]
    seen: list[list[int]] = []

    def look(announced: object, *_: object) -> None:
        with transaction() as connection:
            seen.append(sorted(final_among(connection, queued)))
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
