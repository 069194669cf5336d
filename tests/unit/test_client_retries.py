"""When the client tries again, after how long, and what it says when it stops: both halves by the same cases."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from client import described, make_calls
from client.generate import BY_HAND, make
from points_client import (
    Conflict,
    Gone,
    Invalid,
    NoAnswer,
    NotAccepted,
    NotAllowed,
    NotFound,
    Points,
    PointsError,
    RateLimited,
    Refused,
    attempts,
)
from points_client._async import calling as async_calling
from points_client._sync import calling as sync_calling
from points_client.testing import KEY, URL, FakePoints
from tests.client_halves import HALVES, points_of
from tests.ports import HOST, free_port
from tests.unit.deployment.files import ROOT

BODY: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}
HTML = "<html>Something else</html>"


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.slept_s: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)

    async def sleep_in_a_loop(self, seconds: float) -> None:
        self.sleep(seconds)

    def monotonic(self) -> float:
        return sum(self.slept_s)


def refused(status: int, **errors: list[str]) -> httpx.Response:
    """Return a refusal in the envelope of the service."""
    document = {"success": False, "data": None, "errors": errors or {"service": ["No."]}, "additional_data": None}
    return httpx.Response(status, json=document)


def redirect(status: int) -> httpx.Response:
    return httpx.Response(status, headers={"Location": "https://thief.example"})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sync_calling, "sleep", clock.sleep)
    monkeypatch.setattr(async_calling, "sleep", clock.sleep_in_a_loop)
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.fixture
def fake() -> FakePoints:
    return FakePoints(balance=100)


@pytest.fixture(params=HALVES)
def points(request: pytest.FixtureRequest, fake: FakePoints) -> Iterator[Points]:
    with points_of(request.param, KEY, URL, transport=fake) as made:
        yield made


def test_what_is_made_of_the_client_is_what_would_be_made(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    here = ROOT / "client" / "src" / "points_client"
    there = shutil.copytree(here, tmp_path / "client" / "src" / "points_client")
    for path in (there / "results.py", there / "_async" / "nouns.py", *(there / "_sync").glob("*.py")):
        if path.name not in BY_HAND:
            path.unlink()
    make(there)
    texts = [
        {path.relative_to(package): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
        for package in (here, there)
    ]
    assert texts[0] == texts[1], "run `make format`"


def test_each_call_of_the_service_is_a_method() -> None:
    by_hand = {"showStatement", "listEvents", "listPlatformEvents"}
    made = {pair.partition("=")[2] for methods in make_calls.NOUNS.values() for pair in methods.split()}
    assert made | by_hand == {operation["operationId"] for _, _, operation in described.calls()}


def test_the_service_is_asked_again_later_each_time_or_when_it_says(
    clock: Clock, fake: FakePoints, points: Points
) -> None:
    at = {"Retry-After": "Sat, 31 Jan 2026 09:30:30 GMT", "Date": "Sat, 31 Jan 2026 09:30:00 GMT"}
    fake.faults.extend([refused(503), httpx.ConnectError("refused"), httpx.ReadTimeout("late")])
    fake.faults.extend([httpx.Response(503, headers={"Retry-After": "7"}), httpx.Response(429, headers=at)])
    assert points.send(**BODY).status == "issued"
    first, second, third, *asked = clock.slept_s
    assert 0.25 <= first <= 0.5 <= second <= 1.0 <= third <= 2.0
    assert 7 <= asked[0] <= 7.7
    assert 30 <= asked[1] <= 33


@pytest.mark.parametrize("half", HALVES)
def test_where_nothing_listens_a_call_ends_soon_and_says_where(clock: Clock, half: str) -> None:
    port = free_port()
    with points_of(half, KEY, f"http://{HOST}:{port}") as points, pytest.raises(NotAccepted) as none:
        points.send(**BODY, idempotency_key="mine")
    assert f"Connection refused at {HOST}:{port}. Are host and port right" in str(none.value)
    assert none.value.key == "mine"
    assert 0 < sum(clock.slept_s) <= 4


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize(("patience_s", "was_there"), [(60, True), (61, False)], ids=["was there", "patience above 60"])
def test_who_was_there_or_is_waited_for_is_tried_as_long_as_before(
    clock: Clock, fake: FakePoints, half: str, patience_s: float, was_there: bool
) -> None:
    with points_of(half, KEY, URL, transport=fake, patience_s=patience_s) as points:
        if was_there:
            points.organization()
        fake.faults.extend([httpx.ConnectError("refused")] * 5)
        assert points.send(**BODY).status == "issued"
    assert sum(clock.slept_s) > 7


LOST, BUSY = httpx.ReadTimeout("lost"), httpx.Response(429, text=HTML)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([refused(501)], NoAnswer),
        ([httpx.Response(403, text=HTML)], NoAnswer),
        ([httpx.Response(404, json={"detail": "Not Found"})], NoAnswer),
        ([httpx.Response(200, text=HTML)], NoAnswer),
        ([httpx.Response(502), refused(401)], NoAnswer),
        ([LOST, httpx.Response(403, text=HTML)], NoAnswer),
        ([redirect(308)], PointsError),
        ([LOST, redirect(302)], NoAnswer),
        ([LOST, refused(403)], NotAllowed),
        ([refused(404)], NotFound),
        ([refused(410)], Gone),
        ([refused(429), refused(400)], Invalid),
        ([BUSY, refused(400)], NoAnswer),
        ([refused(409)], Conflict),
        ([RuntimeError("a bug of a library")], NoAnswer),
    ],
)
def test_a_send_that_may_be_accepted_is_not_said_to_be_refused(
    clock: Clock, fake: FakePoints, points: Points, answers: list[Any], error: type[PointsError]
) -> None:
    fake.faults.extend(answers)
    with pytest.raises(error) as raised:
        points.send(**BODY, idempotency_key="mine")
    assert (type(raised.value), raised.value.key) == (error, "mine")
    assert error is not PointsError or raised.value.location == "https://thief.example", "told, and not followed"
    assert len(clock.slept_s) == len(answers) - 1


def test_one_call_too_many_is_refused_and_surely_not_accepted(points: Points) -> None:
    with pytest.raises(RateLimited) as raised:
        points.send(recipients=["rate_limited@sandbox.points.test"], amount=1, idempotency_key="mine", wait_s=1)
    assert isinstance(raised.value, Refused)
    assert isinstance(raised.value, NotAccepted)
    assert (raised.value.code, raised.value.request_id, raised.value.key) == ("rate_limited", "fake-1", "mine")


@pytest.mark.parametrize(
    ("call", "is_repeated", "error"),
    [
        (lambda points: points.batches.cancel(1), True, Refused),
        (lambda points: points.webhooks.enable(1), True, Refused),
        # By their key they are made once; what an earlier try has made, a refusal of a later one does not tell.
        (lambda points: points.webhooks.create("https://example.com"), True, NoAnswer),
        (lambda points: points.webhooks.rotate(1), True, NoAnswer),
        (lambda points: points.webhooks.skip(1), False, NoAnswer),
        (lambda points: points.rehearsing.set_clock("2026-01-31T09:30:00Z"), False, NoAnswer),
    ],
    ids=["cancel", "enable", "create", "rotate", "skip", "set_clock"],
)
def test_what_must_not_be_done_twice_is_tried_again_only_when_it_was_surely_not_done(
    clock: Clock,
    fake: FakePoints,
    points: Points,
    call: Callable[[Points], object],
    is_repeated: bool,
    error: type[PointsError],
) -> None:
    fake.faults.extend([refused(429), httpx.ConnectError("refused"), LOST, refused(404)])
    with pytest.raises(error):
        call(points)
    assert len(clock.slept_s) == (3 if is_repeated else 2)
    fake.faults.clear()
    fake.faults.extend([BUSY, refused(404)])  # A proxy may have passed it on.
    with pytest.raises(error):
        call(points)
