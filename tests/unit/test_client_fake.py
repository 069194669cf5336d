"""What `FakePoints` has for the tests of a caller beyond the service's answers: faults on request, and clear limits."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from points_client import NoAnswer, Points, Refused
from points_client.testing import KEY, URL, FakePoints, NotInFake
from tests.client_halves import HALVES, points_of

ANN: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}
NOT_THERE: dict[str, Callable[[Points], object]] = {
    "a call": lambda points: points.batches.cancel(1),
    "a log": lambda points: list(points.events.list()),
    "a statement": lambda points: points.statement(from_="2026-01-01", to="2026-01-31"),
    "a field": lambda points: points.send(**ANN, hold_days=1),
    "a field of an item": lambda points: points.send(items=[{"emial": "ann@example.com"}], amount=1),
    "an address": lambda points: points.send(recipients=["jörg@exämple.com"], amount=1),
    "a filter": lambda points: list(points.transactions.list(created_from="2026-01-31T09:30:00Z")),
    "a value of a filter": lambda points: list(points.batches.list(status="done")),
}


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("call", NOT_THERE.values(), ids=list(NOT_THERE))
def test_what_it_does_not_have_it_names_beside_the_sandbox(call: Callable[[Points], object], half: str) -> None:
    fake = FakePoints()
    with points_of(half, KEY, URL, transport=fake) as points, pytest.raises(NotInFake, match="sandbox of a real one"):
        call(points)
    assert fake.transactions == []


@pytest.mark.parametrize("half", HALVES)
def test_it_fails_as_it_is_told_and_pays_once(half: str) -> None:
    fake = FakePoints(balance=9)
    with points_of(half, KEY, URL, transport=fake, patience_s=0) as points:
        fake.faults.extend([httpx.Response(503), httpx.ConnectError("away")])
        fake.answers_lost = 1
        for _ in range(3):
            with pytest.raises(NoAnswer):
                points.send(**ANN, idempotency_key="mine", wait_s=0)
        other = points.send(**ANN, idempotency_key="other")
        assert other.status == "issued"
        assert [one.email for one in points.batches.recipients(other.batch_id)] == ANN["recipients"]
        assert points.send(**ANN, idempotency_key="mine").replayed
        fake.suspended = True
        with pytest.raises(Refused):
            points.send(**ANN)
    assert (fake.balance, [one["state"] for one in fake.transactions]) == (7, ["held", "held"])
