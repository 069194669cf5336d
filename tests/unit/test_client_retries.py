"""When the client tries again, after how long, and what it says when it stops."""

import importlib.util
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from points_client import Invalid, NoAnswer, Points, PointsError, Refused, Wait, attempts
from points_client._sync import calling
from points_client.attempts import retry_after_s
from points_client.testing import KEY, URL, FakePoints
from tests.unit.deployment.files import ROOT

BODY: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}
DATE = "Sat, 31 Jan 2026 09:30:00 GMT"


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.slept_s: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)

    def monotonic(self) -> float:
        return sum(self.slept_s)


def refused(status: int, **errors: list[str]) -> httpx.Response:
    """Return a refusal in the envelope of the service."""
    document = {"success": False, "data": None, "errors": errors or {"service": ["No."]}, "additional_data": None}
    return httpx.Response(status, json=document)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(calling, "sleep", clock.sleep)
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.fixture
def fake() -> FakePoints:
    return FakePoints(balance=100)


@pytest.fixture
def points(fake: FakePoints) -> Iterator[Points]:
    with Points(KEY, URL, transport=fake) as made:
        yield made


def test_the_code_without_async_is_made_from_the_code_with_it() -> None:
    spec = importlib.util.spec_from_file_location("make_sync", ROOT / "client" / "make_sync.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.made()
    there = {path for path in (module.PACKAGE / "_sync").glob("*.py") if path.name not in module.BY_HAND}
    assert set(made) == there
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make format`"


@pytest.mark.parametrize(
    "fault",
    [
        httpx.Response(408),
        httpx.Response(429),
        httpx.Response(500),
        httpx.Response(502, text="<html>"),
        httpx.Response(503),
        httpx.Response(504),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("late"),
        httpx.RemoteProtocolError("cut"),
        httpx.Response(201, text='{"success": tr', headers={"Content-Type": "application/json"}),
    ],
    ids=lambda fault: getattr(fault, "status_code", type(fault).__name__),
)
def test_what_passes_is_tried_again_under_the_same_key(
    clock: Clock, fake: FakePoints, points: Points, fault: httpx.Response | Exception
) -> None:
    fake.faults.extend([fault, fault])
    sent = points.send(**BODY)
    assert sent.status == "issued"
    first, second = clock.slept_s
    assert 0.25 <= first <= 0.5 <= second <= 1.0


def test_an_answer_that_is_lost_is_asked_for_again_and_paid_once(
    clock: Clock, fake: FakePoints, points: Points
) -> None:
    fake.answers_lost = 3
    sent = points.send(**BODY)
    assert (sent.amount, fake.balance, len(clock.slept_s)) == (1, 99, 3)
    assert not sent.replayed, "it was issued by an earlier try of this very call"


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


def test_the_time_ends_with_the_key_to_ask_again_with(clock: Clock, fake: FakePoints, points: Points) -> None:
    fake.faults.extend([httpx.Response(503)] * 50)
    with pytest.raises(NoAnswer, match="answers 503") as none:
        points.send(**BODY, idempotency_key="mine", wait_s=20)
    assert (none.value.key, none.value.status) == ("mine", 503)
    assert clock.monotonic() <= 20
    fake.faults.clear()
    fake.faults.append(httpx.Response(429, headers={"Retry-After": "3600"}))
    before = len(clock.slept_s)
    with pytest.raises(NoAnswer):
        points.organization()
    assert len(clock.slept_s) == before, "a wait that is too long is not begun"


def test_each_wait_is_told_and_may_be_refused(clock: Clock, fake: FakePoints) -> None:
    told: list[Wait] = []
    fake.faults.extend([httpx.Response(502), httpx.ConnectError("away")])
    with Points(KEY, URL, transport=fake, on_wait=told.append) as points:
        points.organization()
    assert [(wait.status, wait.trouble) for wait in told] == [
        (502, "The service answers 502"),
        (None, "The service cannot be reached: away"),
    ]
    assert [wait.seconds for wait in told] == clock.slept_s


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([refused(501)], NoAnswer),
        ([httpx.Response(403, text="<html>Blocked</html>")], NoAnswer),
        ([httpx.Response(413, text="<html>Too large</html>")], NoAnswer),
        ([httpx.Response(404, json={"detail": "Not Found"})], NoAnswer),
        ([httpx.Response(200, text="<html>Welcome</html>")], NoAnswer),
        ([httpx.Response(502), httpx.Response(401, json={"errors": {"authorization": ["No."]}})], NoAnswer),
        ([httpx.ReadTimeout("lost"), httpx.Response(403, text="<html>Blocked</html>")], NoAnswer),
        ([httpx.Response(308, headers={"Location": "https://x.example"})], PointsError),
        ([httpx.ReadTimeout("lost"), httpx.Response(302, headers={"Location": "https://x.example"})], NoAnswer),
        ([httpx.ReadTimeout("lost"), httpx.Response(403, json={"errors": {"organization": ["No."]}})], Refused),
        ([refused(429), httpx.Response(400, json={"errors": {"amount": ["No."]}})], Invalid),
        ([httpx.Response(429), httpx.Response(400, json={"errors": {"amount": ["No."]}})], NoAnswer),
        ([httpx.Response(409, json={"errors": {"batch": ["Cancelled."]}})], Refused),
    ],
)
def test_a_send_that_may_be_accepted_is_not_said_to_be_refused(
    clock: Clock, fake: FakePoints, points: Points, answers: list[Any], error: type[PointsError]
) -> None:
    fake.faults.extend(answers)
    with pytest.raises(error) as raised:
        points.send(**BODY, idempotency_key="mine")
    assert type(raised.value) is error
    assert len(clock.slept_s) == len(answers) - 1


@pytest.mark.parametrize(
    ("call", "is_repeated"),
    [
        (lambda points: points.batches.cancel(1), True),
        (lambda points: points.webhooks.enable(1), True),
        (lambda points: points.webhooks.create("https://example.com"), False),
        (lambda points: points.webhooks.rotate(1), False),
        (lambda points: points.webhooks.skip(1), False),
    ],
    ids=["cancel", "enable", "create", "rotate", "skip"],
)
def test_what_must_not_be_done_twice_is_tried_again_only_when_it_was_surely_not_done(
    clock: Clock, fake: FakePoints, points: Points, call: Callable[[Points], object], is_repeated: bool
) -> None:
    fake.faults.extend([refused(429), httpx.ConnectError("refused"), httpx.ReadTimeout("lost"), refused(404)])
    with pytest.raises(Refused if is_repeated else NoAnswer):
        call(points)
    assert len(clock.slept_s) == (3 if is_repeated else 2)
    fake.faults.clear()
    fake.faults.append(httpx.Response(429, text="<html>Of a proxy, that may have passed it on</html>"))
    fake.faults.append(refused(404))
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
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    found = retry_after_s(httpx.Response(503, headers={"Retry-After": soon}))
    assert found is not None
    assert 20 < found <= 30


def test_a_redirect_is_not_followed_with_the_key(fake: FakePoints, points: Points) -> None:
    fake.faults.append(httpx.Response(308, headers={"Location": "https://thief.example"}))
    with pytest.raises(PointsError, match=r"points to https://thief\.example") as raised:
        points.organization()
    assert raised.value.location == "https://thief.example"


@pytest.mark.parametrize("url", ["points.example.com", "ftp://x", "http://", "http://[::1", "http://x:port"])
def test_what_is_no_url_is_no_url(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|IPv6|port"):
        Points(KEY, url)


def test_a_key_with_a_line_in_it_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="copy it once more") as error:
        Points("pts_dev_\nsecret", URL)
    assert "secret" not in str(error.value)


def test_one_address_is_not_sent_letter_by_letter(points: Points) -> None:
    with pytest.raises(TypeError, match="one string"):
        points.send(recipients="ann@example.com", amount=1)
