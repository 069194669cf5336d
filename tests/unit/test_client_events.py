"""The client's events, consumers and signatures, without a network: both halves by the same cases."""

import contextlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook as Signer

from points_client import Consumer, Event, Invalid, InvalidSignature, Points, PointsError, Refused, verify_webhook
from points_client.testing import KEY, URL
from tests.client_halves import HALVES, consumer_of, points_of

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MOMENT = "2026-01-31T09:30:00.000000Z"


def event(sequence: int, kind: str = "batch.issued") -> dict[str, Any]:
    about = {"type": kind, "timestamp": MOMENT, "id": f"evt_{sequence}", "sequence": sequence, "sandbox": True}
    return {**about, "version": "1.0", "organization": {"id": 1}, "data": {"batch": {}}, "more": "unknown"}


class Log:
    """A service that answers from a log of events, three at a time, and remembers what it was asked."""

    def __init__(self, last: int) -> None:
        self.last, self.dropped_to = last, 0
        self.kinds: dict[int, str] = {}
        self.calls: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.calls.append(request.url.raw_path.decode())
        if request.url.path == "/v1/organization":
            about = {"id": 1, "name": "Acme", "is_disabled": False, "is_suspended": False, "balance": 1}
            return told(about | {"created_at": MOMENT})
        after = int(request.url.params.get("after", self.dropped_to))
        if after < self.dropped_to:
            sentence = f"The events up to {self.dropped_to} are no longer kept."
            beside = {"code": "events_expired", "oldest": self.dropped_to + 1}
            document = {"success": False, "data": None, "errors": {"after": [sentence]}, "additional_data": beside}
            return httpx.Response(410, json=document)
        looked = [event(one, self.kinds.get(one, "batch.issued")) for one in range(after + 1, self.last + 1)][:3]
        types = request.url.params.get("types", "*").split(",")
        found = [one for one in looked if any(fnmatchcase(one["type"], glob) for glob in types)]
        return told({"events": found, "last_sequence": looked[-1]["sequence"] if looked else after})


def told(data: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json={"success": True, "data": data, "errors": None, "additional_data": {}})


@pytest.fixture
def log() -> Log:
    return Log(7)


@pytest.fixture(params=HALVES)
def points(request: pytest.FixtureRequest, log: Log) -> Iterator[Points]:
    with points_of(request.param, KEY, URL, transport=httpx.MockTransport(log)) as made:
        yield made


def test_a_list_of_events_ends_with_the_log_and_following_it_does_not(points: Points, log: Log) -> None:
    assert [one.sequence for one in points.events.list()] == [1, 2, 3, 4, 5, 6, 7]
    assert points.events.last_sequence() == 7
    followed = points.events.follow(after=5, types=("batch.*", "ping"))
    assert [next(followed).sequence for _ in range(2)] == [6, 7]
    assert log.calls[-1] == "/v1/events?after=5&types=batch.%2A%2Cping&limit=100&wait=25"
    log.last = 8
    found = next(followed)
    assert (found.sequence, found.type, found.document["more"]) == (8, "batch.issued", "unknown")
    assert found.timestamp == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


class Books:
    """The caller's database: a transaction that rolls back what a crash leaves half done."""

    def __init__(self) -> None:
        self.handled: list[int] = []
        self.sequence = 0
        self.crash_at: int | None = None

    @contextlib.contextmanager
    def transaction(self) -> Iterator["Books"]:
        before = self.sequence, [*self.handled]
        try:
            yield self
        except BaseException:
            self.sequence, self.handled = before
            raise

    def load(self, _transaction: "Books") -> int:
        return self.sequence

    def handle(self, _transaction: "Books", found: Event) -> None:
        self.handled.append(found.sequence)
        if found.sequence == self.crash_at:
            raise RuntimeError("crash")

    def store(self, _transaction: "Books", sequence: int) -> None:
        self.sequence = sequence


@pytest.fixture
def books() -> Books:
    return Books()


def reader(points: Points, books: Books, types: tuple[str, ...] | None = None) -> Consumer[Books]:
    how = {"load": books.load, "handle": books.handle, "store": books.store, "types": types}
    return consumer_of(points, transaction=books.transaction, **how)


def delivered(sequence: int, **changed: Any) -> Event:
    body = json.dumps(event(sequence) | changed)
    return verify_webhook(body, _signed(body), SECRET)


def test_a_consumer_handles_each_event_once_also_after_a_crash_and_when_it_comes_again(
    points: Points, books: Books
) -> None:
    consumer, books.crash_at = reader(points, books), 4
    with pytest.raises(RuntimeError):
        consumer.catch_up()
    assert (books.handled, books.sequence) == ([1, 2, 3], 3)
    books.crash_at = None
    assert consumer.catch_up() == 4
    assert not consumer.take(delivered(7))
    assert books.handled == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("stored", [0, 3, 6])
def test_an_event_that_comes_before_others_is_handled_after_them(points: Points, books: Books, stored: int) -> None:
    books.sequence = stored
    assert reader(points, books).take(delivered(7))
    assert (books.handled, books.sequence) == ([*range(stored + 1, 8)], 7)


def test_an_event_is_not_handled_while_one_before_it_cannot_be_had(points: Points, books: Books, log: Log) -> None:
    log.last = 4
    with pytest.raises(PointsError, match="ends at 4, before the event 7"):
        reader(points, books).take(delivered(7))
    assert (books.handled, books.sequence) == ([1, 2, 3, 4], 4)


@pytest.mark.parametrize("changed", [{"sandbox": False}, {"organization": {"id": 2}}, {"organization": {}}], ids=str)
def test_an_event_of_another_log_is_not_handled(points: Points, books: Books, changed: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="another organization or mode"):
        reader(points, books).take(delivered(1, **changed))
    assert (books.handled, books.sequence) == ([], 0)


def test_the_place_of_a_consumer_follows_the_log_also_where_nothing_is_for_it(
    points: Points, books: Books, log: Log
) -> None:
    log.kinds = {2: "ping", 7: "ping"}
    assert not reader(points, books, ("batch.*",)).take(delivered(7, type="ping"))
    assert (books.handled, books.sequence) == ([1, 3, 4, 5, 6], 7)
    assert reader(points, books, ("user.*",)).catch_up() == 0
    assert books.sequence == 7


def test_a_consumer_begins_with_the_oldest_event_that_is_kept(points: Points, books: Books, log: Log) -> None:
    log.dropped_to = 4
    assert reader(points, books).catch_up() == 3
    books.sequence = 2
    with pytest.raises(Refused, match="no longer kept"):
        reader(points, books).catch_up()


def _signed(body: str, *, secret: str = SECRET, at: datetime | None = None) -> dict[str, str]:
    moment = at or datetime.now(UTC)
    signature = Signer(secret).sign("evt_1", moment, body)
    timestamp = str(int(moment.timestamp()))
    return {"Webhook-Id": "evt_1", "Webhook-Timestamp": timestamp, "Webhook-Signature": signature}


def test_a_signature_of_the_library_that_signs_is_believed() -> None:
    body = json.dumps(event(1))
    assert verify_webhook(body.encode(), _signed(body), SECRET).sequence == 1
    other = _signed(body, secret="whsec_" + "QUJD" * 8)["Webhook-Signature"]
    both = _signed(body)
    both["Webhook-Signature"] = f"v1a,other {other} {both['Webhook-Signature']}"
    assert verify_webhook(body, both, SECRET).id == "evt_1"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Webhook-Signature": None}, "webhook-signature is missing"),
        ({"Webhook-Id": "evt_2"}, "No signature"),
        ({"Webhook-Signature": "v1,YWJj"}, "No signature"),
        ({"Webhook-Signature": "v1,é"}, "No signature"),
        ({"Webhook-Signature": "v1,\udcff"}, "No signature"),
        ({"Webhook-Id": "\xff"}, "must be ASCII"),
        ({"Webhook-Id": "\udcff"}, "must be ASCII"),
        ({"Webhook-Signature": ""}, "No signature"),
        ({"Webhook-Timestamp": "1769851800"}, "No signature"),
    ],
)
def test_what_is_not_signed_with_the_secret_is_not_believed(change: dict[str, str | None], words: str) -> None:
    body = json.dumps(event(1))
    headers = {name: value for name, value in (_signed(body) | change).items() if value is not None}
    with pytest.raises(InvalidSignature, match=words):
        verify_webhook(body, headers, SECRET)
    with pytest.raises(InvalidSignature, match="No signature"):
        verify_webhook(body + " ", _signed(body), SECRET)


@pytest.mark.parametrize("away_s", [-301, 301])
def test_a_signature_is_good_for_five_minutes(away_s: int) -> None:
    body, now = json.dumps(event(1)), time.time()
    near = datetime.fromtimestamp(now + away_s * 0.98, UTC)
    assert verify_webhook(body, _signed(body, at=near), SECRET).sequence == 1
    with pytest.raises(InvalidSignature, match="5 minutes"):
        verify_webhook(body, _signed(body, at=datetime.fromtimestamp(now + away_s * 1.01, UTC)), SECRET)


def test_signed_text_that_is_no_event_is_not_taken_for_one() -> None:
    with pytest.raises(InvalidSignature, match="no event"):
        verify_webhook("{}", _signed("{}"), SECRET)
    deep = "[" * 100_000
    with pytest.raises(InvalidSignature, match="no event"):
        verify_webhook(deep, _signed(deep), SECRET)
