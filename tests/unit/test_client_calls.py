"""The client's runs, events, webhooks and signatures, without a network."""

import asyncio
import base64
import contextlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook as Signer

from points_client import (
    AsyncConsumer,
    AsyncPoints,
    Consumer,
    Event,
    Invalid,
    InvalidSignature,
    NoAnswer,
    Points,
    PointsError,
    verify_webhook,
)
from points_client.testing import KEY, URL, FakePoints

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MOMENT = "2026-01-31T09:30:00.000000Z"


def event(sequence: int, kind: str = "batch.issued") -> dict[str, Any]:
    about = {"type": kind, "timestamp": MOMENT, "id": f"evt_{sequence}", "sequence": sequence, "sandbox": True}
    return {**about, "version": "1.0", "organization": {"id": 1}, "data": {"batch": {}}, "more": "unknown"}


def refused(status: int, **errors: list[str]) -> httpx.Response:
    return httpx.Response(status, json={"success": False, "data": None, "errors": errors, "additional_data": None})


class Log:
    """A service that answers from a log of events, three at a time, and remembers what it was asked."""

    def __init__(self, last: int) -> None:
        self.last, self.dropped_to = last, 0
        self.kinds: dict[int, str] = {}
        self.calls: list[tuple[str, str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.calls.append((request.method, request.url.raw_path.decode(), body))
        if request.method == "DELETE":
            return httpx.Response(204)
        if request.url.path == "/v1/events":
            after = int(request.url.params.get("after", 0))
            after = max(after, self.dropped_to if "after" not in request.url.params else 0)
            if after < self.dropped_to:
                return refused(400, after=[f"The events up to {self.dropped_to} are no longer kept."])
            looked = [
                event(one, self.kinds.get(one, "batch.issued"))
                for one in range(after + 1, min(after + 3, self.last) + 1)
            ]
            types = request.url.params.get("types", "*").split(",")
            found = [one for one in looked if any(fnmatchcase(one["type"], glob) for glob in types)]
            data: dict[str, Any] = {"events": found, "last_sequence": looked[-1]["sequence"] if looked else after}
        elif request.url.path == "/v1/organization":
            data = {
                "id": 1,
                "name": "Acme",
                "is_disabled": False,
                "is_suspended": False,
                "balance": 1,
                "created_at": MOMENT,
            }
        elif request.method == "GET" and request.url.path.endswith(("/webhooks", "/deliveries")):
            name = request.url.path.rpartition("/")[2]
            about = {"id": 5, "event": {"id": "evt_1", "sequence": 1, "type": "ping"}, "attempt": 1, "delivered": True}
            own = {"url": "https://x.example", "status": "enabled"} if name == "webhooks" else {}
            data = {name: [{**about, **own}], "next_cursor": None}
        else:
            data = {"id": 5, "url": "https://x.example", "status": "enabled", "types": ["*"], "secret": SECRET}
        return httpx.Response(
            200, json={"success": True, "data": data, "errors": None, "additional_data": {"version": "1.0"}}
        )


@pytest.fixture
def log() -> Log:
    return Log(7)


@pytest.fixture
def points(log: Log) -> Iterator[Points]:
    with Points(KEY, URL, transport=httpx.MockTransport(log)) as made:
        yield made


def test_a_list_of_events_ends_with_the_log_and_following_it_does_not(points: Points, log: Log) -> None:
    assert [one.sequence for one in points.events.list()] == [1, 2, 3, 4, 5, 6, 7]
    assert points.events.last_sequence() == 7
    followed = points.events.follow(after=5, types=("batch.*", "ping"))
    assert [next(followed).sequence for _ in range(2)] == [6, 7]
    assert log.calls[-1][1] == "/v1/events?after=5&types=batch.%2A%2Cping&limit=100&wait=25"
    log.last = 8
    found = next(followed)
    assert (found.sequence, found.type, found.document["more"]) == (8, "batch.issued", "unknown")
    assert found.timestamp == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def test_each_webhook_call_is_the_one_of_the_interface(points: Points, log: Log) -> None:
    webhooks = points.webhooks
    made = webhooks.create("https://x.example", types=("batch.*",))
    assert (made.id, made.secret, made.types) == (5, SECRET, ("*",))
    assert [one.id for one in webhooks.list()] == [5]
    assert webhooks.get(5).status == "enabled"
    webhooks.update(5, description="Shop")
    webhooks.ping(5)
    webhooks.rotate(5)
    webhooks.disable(5)
    webhooks.enable(5)
    webhooks.replay(5, from_sequence=3)
    webhooks.skip(5)
    assert [one.event.sequence for one in webhooks.deliveries(5)] == [1]
    webhooks.delete(5)
    assert log.calls == [
        ("POST", "/v1/webhooks", {"url": "https://x.example", "types": ["batch.*"]}),
        ("GET", "/v1/webhooks", None),
        ("GET", "/v1/webhooks/5", None),
        ("PATCH", "/v1/webhooks/5", {"description": "Shop"}),
        *(("POST", f"/v1/webhooks/5/{verb}", None) for verb in ("ping", "rotate", "disable", "enable")),
        ("POST", "/v1/webhooks/5/replay", {"from_sequence": 3}),
        ("POST", "/v1/webhooks/5/skip", None),
        ("GET", "/v1/webhooks/5/deliveries", None),
        ("DELETE", "/v1/webhooks/5", None),
    ]


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


def test_a_consumer_handles_each_event_once_also_after_a_crash_and_when_it_comes_again(points: Points) -> None:
    books = Books()
    consumer = consumer_of(points, books)
    books.crash_at = 4
    with pytest.raises(RuntimeError):
        consumer.catch_up()
    assert (books.handled, books.sequence) == ([1, 2, 3], 3)
    books.crash_at = None
    assert consumer.catch_up() == 4
    [again] = list(points.events.list(after=6))
    assert not consumer.take(again)
    assert books.handled == [1, 2, 3, 4, 5, 6, 7]


def consumer_of(points: Points, books: Books, types: tuple[str, ...] | None = None) -> Consumer[Books]:
    return Consumer(
        points, transaction=books.transaction, load=books.load, handle=books.handle, store=books.store, types=types
    )


def told(sequence: int, **changed: Any) -> Event:
    body = json.dumps(event(sequence) | changed)
    return verify_webhook(body, _signed(body), SECRET)


@pytest.mark.parametrize("stored", [0, 3, 6])
def test_an_event_that_comes_before_others_is_handled_after_them(points: Points, stored: int) -> None:
    books = Books()
    books.sequence = stored
    assert consumer_of(points, books).take(told(7))
    assert (books.handled, books.sequence) == ([*range(stored + 1, 8)], 7)


def test_an_event_is_not_handled_while_one_before_it_cannot_be_had(points: Points, log: Log) -> None:
    books, log.last = Books(), 4
    with pytest.raises(PointsError, match="ends at 4, before the event 7"):
        consumer_of(points, books).take(told(7))
    assert (books.handled, books.sequence) == ([1, 2, 3, 4], 4)


@pytest.mark.parametrize("changed", [{"sandbox": False}, {"organization": {"id": 2}}, {"organization": {}}])
def test_an_event_of_another_log_is_not_handled(points: Points, changed: dict[str, Any]) -> None:
    books = Books()
    with pytest.raises(Invalid, match="another organization or mode"):
        consumer_of(points, books).take(told(1, **changed))
    assert (books.handled, books.sequence) == ([], 0)


def test_an_event_of_a_type_that_was_not_asked_for_is_passed(points: Points, log: Log) -> None:
    books, log.kinds = Books(), {2: "ping", 7: "ping"}
    assert not consumer_of(points, books, ("batch.*",)).take(told(7, type="ping"))
    assert (books.handled, books.sequence) == ([1, 3, 4, 5, 6], 7)


def test_the_place_of_a_consumer_follows_the_log_also_where_nothing_is_for_it(points: Points, log: Log) -> None:
    books = Books()
    log.kinds = dict.fromkeys(range(1, 8), "ping")
    assert consumer_of(points, books, ("batch.*",)).catch_up() == 0
    assert (books.handled, books.sequence) == ([], 7)


def test_a_consumer_begins_with_the_oldest_event_that_is_kept(points: Points, log: Log) -> None:
    books, log.dropped_to = Books(), 4
    assert consumer_of(points, books).catch_up() == 3
    books.sequence = 2
    with pytest.raises(Invalid, match="no longer kept"):
        consumer_of(points, books).catch_up()


def test_an_asynchronous_consumer_does_the_same(log: Log) -> None:
    books = Books()

    @contextlib.asynccontextmanager
    async def transaction() -> Any:
        with books.transaction() as opened:
            yield opened

    async def load(_: Books) -> int:
        return books.sequence

    async def handle(_: Books, found: Event) -> None:
        books.handled.append(found.sequence)

    async def store(_: Books, sequence: int) -> None:
        books.sequence = sequence

    async def run() -> int:
        async with AsyncPoints(KEY, URL, transport=httpx.MockTransport(log)) as points:
            consumer = AsyncConsumer(points, transaction=transaction, load=load, handle=handle, store=store)
            assert await consumer.take(told(5))
            return await consumer.catch_up()

    assert asyncio.run(run()) == 2
    assert books.handled == [1, 2, 3, 4, 5, 6, 7]


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


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_*", "whsec_QUJD", "whsec_" + "QUJD" * 7, "QUJD"])
def test_a_secret_that_anybody_could_guess_is_not_taken(secret: str) -> None:
    body = json.dumps(event(1))
    key = base64.b64encode(
        hmac.digest(base64.b64decode(secret[6:]), f"evt_1.{int(time.time())}.{body}".encode(), "sha256")
    )
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(time.time())),
        "webhook-signature": f"v1,{key.decode()}",
    }
    with pytest.raises(ValueError, match="secret must"):
        verify_webhook(body, headers, secret)


class Counting(FakePoints):
    """Knows how many sends ran at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.running = self.most = self.sends = 0
        self.lock, self.both = threading.Lock(), threading.Barrier(2)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self.lock:
            self.running, self.sends = self.running + 1, self.sends + 1
            self.most = max(self.most, self.running)
        if self.sends <= 2:
            self.both.wait(10)
        answer = super().handle_request(request)
        with self.lock:
            self.running -= 1
        return answer


def test_a_run_is_streamed_with_two_parts_on_their_way() -> None:
    fake, read = Counting(), []

    def emails() -> Iterator[str]:
        for number in range(100):
            read.append(number)
            yield f"{number}@example.com"

    with Points(KEY, URL, transport=fake) as points:
        sent = points.send_all(emails(), run="r", amount=1, part_size=10)
        assert read == []
        assert next(sent).email == "0@example.com"
        assert len(read) == 20, "two parts were read, and no more"
        assert [one.email for one in sent] == [f"{number}@example.com" for number in range(1, 100)]
    assert (fake.most, fake.sends) == (2, 10)


@pytest.mark.parametrize("options", [{"run": ""}, {"run": "a b"}, {"run": "x" * 231}, {"run": "r", "part_size": 0}])
def test_a_run_without_a_name_or_a_size_is_refused(options: dict[str, Any]) -> None:
    with Points(KEY, URL, transport=FakePoints()) as points, pytest.raises(ValueError, match=r"run|part_size"):
        points.send_all(["a@example.com"], amount=1, **options)


def test_a_run_whose_part_is_not_issued_in_time_says_under_which_key() -> None:
    fake = FakePoints()
    fake.queued = 1_000
    with Points(KEY, URL, transport=fake) as points, pytest.raises(NoAnswer) as none:
        list(points.send_all(["a@example.com"], run="2026-03", amount=1, wait_s=0.5))
    assert none.value.key == "2026-03-part-1"


def test_an_answer_of_something_else_is_no_answer_of_the_service() -> None:
    strange = httpx.MockTransport(lambda _: httpx.Response(200, json={"success": True, "data": {}, "errors": None}))
    with Points(KEY, URL, transport=strange) as points, pytest.raises(PointsError, match="not that of"):
        points.batches.get(1)
    with Points(KEY, URL, transport=strange) as points, pytest.raises(PointsError, match="cannot be read"):
        list(points.batches.list())
