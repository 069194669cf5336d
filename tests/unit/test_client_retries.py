"""When the client tries again, after how long, and what it says when it stops: both halves by the same cases."""

import logging
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from client.make_sync import BY_HAND, make
from points_client import Invalid, NoAnswer, NotAccepted, Points, PointsError, Refused, Wait, attempts
from points_client._async import calling as async_calling
from points_client._sync import calling as sync_calling
from points_client.attempts import retry_after_s
from points_client.testing import KEY, URL, FakePoints
from tests.client_halves import HALVES, points_of
from tests.unit.deployment.files import ROOT

BODY: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}
DATE = "Sat, 31 Jan 2026 09:30:00 GMT"
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


def test_the_code_without_async_is_made_from_the_code_with_it(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    made = shutil.copytree(ROOT / "client" / "src" / "points_client", tmp_path / "client" / "src" / "points_client")
    for path in (made / "_sync").glob("*.py"):
        if path.name not in BY_HAND:
            path.unlink()
    make(made)
    here, there = (
        {path.name: path.read_text(encoding="utf-8") for path in (package / "_sync").glob("*.py")}
        for package in (ROOT / "client" / "src" / "points_client", made)
    )
    assert here == there, "run `make format`"


def test_each_wait_is_longer_than_the_one_before(clock: Clock, fake: FakePoints, points: Points) -> None:
    fake.faults.extend([refused(503), httpx.ConnectError("refused"), httpx.ReadTimeout("late")])
    assert points.send(**BODY).status == "issued"
    first, second, third = clock.slept_s
    assert 0.25 <= first <= 0.5 <= second <= 1.0 <= third <= 2.0


def test_a_queued_batch_is_waited_for_and_given_back_when_the_time_is_over(
    clock: Clock, fake: FakePoints, points: Points
) -> None:
    fake.queued = 2
    assert points.send(**BODY).status == "issued"
    assert all(1.0 <= slept <= 1.1 for slept in clock.slept_s)
    fake.queued = 1_000
    sent = points.send(**BODY, wait_s=5)
    assert (sent.status, sent.transactions, sent.amount) == ("queued", (), None)
    assert clock.monotonic() < 9
    with pytest.raises(NoAnswer) as none:
        list(points.send_all(BODY["recipients"], run="2026-03", amount=1, wait_s=0.5))
    assert none.value.key == "2026-03-part-1"


def test_the_time_ends_with_the_key_to_ask_again_with(clock: Clock, fake: FakePoints, points: Points) -> None:
    fake.faults.extend([refused(503)] * 50)
    with pytest.raises(NoAnswer, match="answers 503") as none:
        points.send(**BODY, idempotency_key="mine", wait_s=20)
    assert (none.value.key, none.value.status, none.value.errors) == ("mine", 503, {"service": ["No."]})
    assert clock.monotonic() <= 20
    fake.faults.clear()
    fake.faults.append(httpx.Response(429, headers={"Retry-After": "3600"}))
    before = len(clock.slept_s)
    with pytest.raises(NoAnswer):
        points.organization()
    assert len(clock.slept_s) == before, "a wait that is too long is not begun"


@pytest.mark.parametrize("half", HALVES)
def test_each_wait_is_told_and_logged_without_what_was_sent(
    clock: Clock, fake: FakePoints, caplog: pytest.LogCaptureFixture, half: str
) -> None:
    told: list[Wait] = []
    fake.faults.extend([httpx.Response(502), httpx.ConnectError("away")])
    with (
        caplog.at_level(logging.INFO, "points_client"),
        points_of(half, KEY, URL, transport=fake, on_wait=told.append) as points,
    ):
        points.send(**BODY, idempotency_key="mine")
    assert [(wait.status, wait.trouble) for wait in told] == [
        (502, "The service answers 502"),
        (None, "The service cannot be reached: away"),
    ]
    assert [wait.seconds for wait in told] == clock.slept_s
    logged = [one.getMessage() for one in caplog.records if one.name == "points_client"]
    assert len(logged) == 2
    assert not any("mine" in one or "ann@" in one or KEY in one for one in logged)


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
        ([LOST, refused(403)], Refused),
        ([refused(429), refused(400)], Invalid),
        ([BUSY, refused(400)], NoAnswer),
        ([refused(409)], Refused),
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


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (httpx.ConnectError("refused"), NotAccepted),
        (httpx.PoolTimeout("busy"), NotAccepted),
        (refused(429), NotAccepted),
        (BUSY, NoAnswer),
        (refused(503), NoAnswer),
        (httpx.ReadError("reset"), NoAnswer),
        (httpx.WriteError("reset"), NoAnswer),
    ],
)
def test_what_was_surely_not_accepted_has_a_class_of_its_own(
    clock: Clock, fake: FakePoints, points: Points, fault: Any, kind: type[NoAnswer]
) -> None:
    fake.faults.extend([fault] * 99)
    with pytest.raises(NoAnswer) as none:
        points.send(**BODY, idempotency_key="mine", wait_s=9)
    assert (type(none.value), none.value.key) == (kind, "mine")


@pytest.mark.parametrize(
    ("call", "is_repeated"),
    [
        (lambda points: points.batches.cancel(1), True),
        (lambda points: points.webhooks.enable(1), True),
        (lambda points: points.webhooks.create("https://example.com"), False),
        (lambda points: points.webhooks.rotate(1), False),
        (lambda points: points.webhooks.skip(1), False),
        (lambda points: points.rehearsing.set_clock("2026-01-31T09:30:00Z"), False),
    ],
    ids=["cancel", "enable", "create", "rotate", "skip", "set_clock"],
)
def test_what_must_not_be_done_twice_is_tried_again_only_when_it_was_surely_not_done(
    clock: Clock, fake: FakePoints, points: Points, call: Callable[[Points], object], is_repeated: bool
) -> None:
    fake.faults.extend([refused(429), httpx.ConnectError("refused"), LOST, refused(404)])
    with pytest.raises(Refused if is_repeated else NoAnswer):
        call(points)
    assert len(clock.slept_s) == (3 if is_repeated else 2)
    fake.faults.clear()
    fake.faults.extend([BUSY, refused(404)])  # A proxy may have passed it on.
    with pytest.raises(Refused if is_repeated else NoAnswer):
        call(points)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("999999", 3600),
        ("Sat, 31 Jan 2026 09:30:30 GMT", 30),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Sat, 31 Jan 2099 09:30:00 GMT", 3600),
        ("soon", None),
        ("9" * 400, 3600),
        ("Sat, 31 Jan 99999 09:30:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 3600),
        ("31 Jan 2026 09:30:00 +9999999999", None),
        ("-1", None),
        ("", None),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date_by_the_clock_of_the_answer(
    asked: str, seconds: float | None
) -> None:
    assert retry_after_s(httpx.Response(503, headers={"Retry-After": asked, "Date": DATE})) == seconds


def test_a_date_is_compared_with_our_own_clock_when_the_answer_has_none() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=300), usegmt=True)
    found = retry_after_s(httpx.Response(503, headers={"Retry-After": soon}))
    assert found is not None
    assert 0 < found <= 300
