"""Sends on their way through one web process, over HTTP, with a real PostgreSQL and a real Valkey."""

import gc
import json
import socket
import threading
import time
from base64 import b64decode
from collections.abc import Iterator, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest
from celery import Celery
from werkzeug.test import TestResponse

from app.api.sending import waiting
from app.batches.request import IssueRequest
from app.ledger.drain import drain
from app.messaging import hints, jobs, process_redis, requests
from app.messaging.jobs import QUEUE
from app.postgres.database import transaction
from app.settings import settings
from app.web.application import create_app
from tests.crash.proxy import Proxy
from tests.deadline import TIMEOUT_S, until
from tests.integration import books, races
from tests.pace import in_time

pytestmark = pytest.mark.usefixtures("broker", "many_connections")

ASYNC = {"Prefer": "respond-async"}


class Front:
    """The application of one web process; each call has a thread, as in gunicorn."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._client = create_app().test_client
        self._pool = pool

    def send(self, key: str, emails: Sequence[str] = ("a@example.com",), **more: Any) -> Future[TestResponse]:
        """Send one point to each address; `headers` and fields of the body may be given."""
        headers = {"Authorization": f"Bearer {key}", **more.pop("headers", {})}
        body = {"recipients": list(emails), "amount": 1, **more}
        return self._pool.submit(self._client().post, "/v1/points/send", json=body, headers=headers)


@pytest.fixture
def front(own_send_path: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    monkeypatch.setenv("POINTS_RATE_LIMIT", "off")
    # The service's own Celery app keeps the broker that it was first used with in this process.
    with ThreadPoolExecutor(40) as pool, Celery(set_as_current=False, amqp=jobs._Protocol) as app:
        app.add_defaults(jobs._configuration)
        monkeypatch.setattr(jobs, "celery", app)
        yield Front(pool)


@pytest.fixture
def key() -> str:
    return books.make_live_key(books.make_organization(10**6))


def data_of(sent: Future[TestResponse], status: int = 201) -> dict[str, Any]:
    response = sent.result(TIMEOUT_S)
    assert response.status_code == status, response.text
    data: dict[str, Any] = response.get_json()["data"]
    return data


def accepted() -> list[int]:
    """Return the ids of all batches, in order."""
    return books.values("SELECT id FROM batches ORDER BY id")


@contextmanager
def acceptance_held_up() -> Iterator[None]:
    """Let no batch be written until the block ends: the first send waits for that, and all others for their turn."""
    with transaction() as connection:
        connection.exec_driver_sql("LOCK TABLE batches IN SHARE ROW EXCLUSIVE MODE")
        yield


def messages() -> list[int]:
    """Return the batches that the messages in the broker name, the oldest first."""
    found = [json.loads(message)["body"] for message in process_redis.redis().lrange(QUEUE, 0, -1)]
    return [json.loads(b64decode(body))[1]["batch_id"] for body in reversed(found)]


def backlog() -> list[int]:
    """Return the organizations whose drains are asked for while no worker is there, the oldest first."""
    return [int(words.split()[0]) for words in process_redis.redis().lrange(requests.BACKLOG, 0, -1)]


def asked(front: Front) -> list[int]:
    """Return the backlog once all sends so far have asked: they ask in order, an organization of this call last."""
    last = books.make_organization(1, name="Last")
    data_of(front.send(books.make_live_key(last), headers=ASYNC), 202)
    until(lambda: backlog()[-1:] == [last], "the last has asked")
    return backlog()[:-1]


@pytest.fixture
def kept_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep requests for longer than a slow machine takes for a test."""
    monkeypatch.setattr(requests, "_KEPT_MS", 60_000)
    monkeypatch.setattr(requests, "_CALLED_KEPT_MS", 60_000)


def issue(organization_id: int = 1, *, tells: bool = True) -> None:
    """Drain as a worker does, and tell the fronts."""

    def announce(batch_ids: Sequence[int], _: object) -> None:
        if tells:
            hints.publish(organization_id, batch_ids)

    assert drain(organization_id, announce=announce) is False


def until_heard() -> None:
    """Wait until the front listens for hints."""
    until(lambda: process_redis.redis().pubsub_numsub("points:drains")[0][1] == 1, "the front listens")


@pytest.mark.usefixtures("worker")
def test_sends_that_come_at_once_are_each_issued_once_and_get_their_own_transactions(front: Front, key: str) -> None:
    emails = [[f"{number}-{place}@example.com" for place in range(number % 5 + 1)] for number in range(100)]
    sent = [front.send(key, each) for each in emails]
    answers = [[row["email"] for row in data_of(each)["transactions"]] for each in sent]
    assert answers == emails
    assert (len(accepted()), books.breaches()) == (100, [])


def test_a_send_that_breaks_the_statement_harms_none_of_its_group(front: Front, key: str) -> None:
    books.execute("""
        CREATE FUNCTION refuse_poison() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.label = 'poison' THEN RAISE division_by_zero; END IF; RETURN NEW; END $$
    """)
    books.execute("CREATE TRIGGER poison BEFORE INSERT ON batches FOR EACH ROW EXECUTE FUNCTION refuse_poison()")
    try:
        with acceptance_held_up():  # The first send waits for it, and the others for the first.
            sent = [front.send(key, headers=ASYNC, label="poison" if number == 7 else "good") for number in range(12)]
            races.until_waiting(1)
        statuses = [each.result(TIMEOUT_S).status_code for each in sent]
    finally:
        books.execute("DROP FUNCTION refuse_poison CASCADE")
    assert statuses == [202] * 7 + [500] + [202] * 4
    assert len(accepted()) == 11


def test_postgresql_away_is_503_for_all_who_wait_for_it(postgresql_proxy: Proxy, front: Front, key: str) -> None:
    data_of(front.send(key, headers=ASYNC), 202)
    postgresql_proxy.tell("refuse")
    postgresql_proxy.tell("drop")
    sent = [front.send(key, headers=ASYNC) for _ in range(6)]
    assert {each.result(TIMEOUT_S).status_code for each in sent} == {503}


def test_a_use_of_a_key_that_cannot_be_noted_undoes_no_acceptance(front: Front, key: str) -> None:
    books.execute("""
        CREATE FUNCTION refuse_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE division_by_zero; END $$
    """)
    books.execute("CREATE TRIGGER refuse BEFORE UPDATE ON api_keys FOR EACH ROW EXECUTE FUNCTION refuse_note()")
    try:
        data_of(front.send(key, headers=ASYNC), 202)
    finally:
        books.execute("DROP FUNCTION refuse_note CASCADE")
    assert len(accepted()) == 1


@pytest.mark.usefixtures("kept_long")
def test_while_a_drain_is_asked_for_it_is_not_asked_for_again(front: Front, key: str) -> None:
    first, *_ = [data_of(front.send(key, headers=ASYNC), 202)["batch_id"] for _ in range(5)]
    assert asked(front) == [1]
    assert messages() == [first], "one message brings a worker for all"


@pytest.mark.usefixtures("kept_long")
def test_a_batch_that_comes_after_a_drain_is_asked_for(front: Front, key: str) -> None:
    data_of(front.send(key, headers=ASYNC), 202)
    assert asked(front) == [1]
    issue()
    for _ in range(2):
        data_of(front.send(key, headers=ASYNC), 202)
    assert asked(front).count(1) == 2


@pytest.mark.usefixtures("kept_long")
def test_a_batch_that_comes_before_the_last_look_of_a_drain_is_not_asked_for(front: Front, key: str) -> None:
    data_of(front.send(key, headers=ASYNC), 202)
    assert asked(front) == [1]
    late: list[int] = []

    def announce(batch_ids: Sequence[int], _: object) -> None:
        if not late:  # The request of the first still stands.
            late.append(data_of(front.send(key, headers=ASYNC), 202)["batch_id"])
            assert asked(front).count(1) == 1
        hints.publish(1, batch_ids)

    assert drain(1, announce=announce) is False
    assert backlog().count(1) == 1
    assert books.read_batch(1, late[0])[0].status == "issued"


@pytest.mark.usefixtures("kept_long")
def test_the_sends_that_are_accepted_together_are_asked_for_together(front: Front, key: str) -> None:
    other = books.make_organization(100, name="Other")
    with acceptance_held_up():
        sent = [front.send(key, headers=ASYNC)]
        races.until_waiting(1)
        sent += [front.send(each, headers=ASYNC) for each in [books.make_live_key(other)] * 3]
    for each in sent:
        data_of(each, 202)
    until(lambda: sorted(backlog()) == [1, other], "both organizations' drains are asked for")


def test_who_waits_for_a_batch_whose_message_was_lost_is_answered_by_a_sweep(front: Front, key: str) -> None:
    upkeep = import_module("worker.upkeep")  # Importing the worker ends a process that has no settings yet.
    sent = front.send(key)
    until(lambda: len(messages()) == 1, "its drain is asked for")
    process_redis.redis().delete(QUEUE)
    while not sent.done():
        upkeep.sweep()
    data_of(sent)


@pytest.fixture
def silent_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Name a RabbitMQ that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("POINTS_BROKER_URL", f"amqp://points:hush@127.0.0.1:{silent.getsockname()[1]}/")
        settings.cache_clear()
        yield


@pytest.mark.alone
def test_a_silent_broker_costs_a_send_about_three_seconds(silent_broker: None, front: Front, key: str) -> None:
    for number in (1, 2):
        began = time.monotonic()
        sent = front.send(key)
        until(lambda: len(accepted()) == number, "it is accepted")  # noqa: B023  # Called in this round alone.
        issue()
        data_of(sent)
        assert in_time(time.monotonic() - began - 2, 1.5)  # It is tried twice, a second each.


def test_a_batch_whose_hint_is_lost_is_answered_by_the_next_look(front: Front, key: str) -> None:
    sent = front.send(key)
    until(lambda: len(messages()) == 1, "its drain is asked for")
    issue(tells=False)
    assert len(data_of(sent)["transactions"]) == 1


def test_a_hint_alone_wakes_who_waits(front: Front, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_EVERY_S", 60.0)
    small, large = front.send(key), front.send(key, [f"{number}@example.com" for number in range(500)])
    until_heard()
    until(lambda: len(accepted()) == 2, "both are accepted")
    issue()
    assert [len(data_of(sent)["transactions"]) for sent in (small, large)] == [1, 500]


def test_a_hint_before_anybody_waits_is_not_missed(front: Front, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_EVERY_S", 60.0)
    other_key = books.make_live_key(books.make_organization(100, name="Other"))
    other = front.send(other_key)
    until_heard()
    until(lambda: len(accepted()) == 1, "the other waits")

    def issue_both() -> None:
        issue(1)
        issue(2)
        data_of(other)  # What is heard is heard in order: so the front knows of both.

    with races.before_statement("UPDATE api_keys", issue_both):  # Of a new key the use is noted, before it waits.
        sent = front.send(key)
        assert len(data_of(sent)["transactions"]) == 1


def test_a_hint_that_is_wrong_answers_nobody(front: Front, key: str) -> None:
    sent = front.send(key)
    until_heard()
    until(lambda: len(accepted()) == 1, "it is accepted")
    hints.publish(1, accepted())
    issue()
    assert len(data_of(sent)["transactions"]) == 1


def kept(email: str) -> list[object]:
    """Return the requests in memory that name this address; other tests keep some of their own."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, IssueRequest) and email in each.emails]


def test_who_waits_keeps_none_of_its_addresses(front: Front, key: str) -> None:
    sent = front.send(key, [f"waits{number}@example.com" for number in range(100)])
    until(lambda: len(messages()) == 1, "it waits")
    until(lambda: not kept("waits7@example.com"), "what it has sent is forgotten")
    issue()
    data_of(sent)


def test_a_thread_that_the_system_could_not_start_is_started_with_the_next_send(
    front: Front, key: str, monkeypatch: pytest.MonkeyPatch, events: list[MutableMapping[str, Any]]
) -> None:
    start = threading.Thread.start

    def none_left(thread: threading.Thread) -> None:
        if thread.name.startswith("sending"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", none_left)
    data_of(front.send(key, headers=ASYNC), 202)
    assert [event["event"] for event in events if event["log_level"] == "error"] == ["thread_failed"]
    monkeypatch.setattr(threading.Thread, "start", start)
    sent = front.send(key)
    until(lambda: len(accepted()) == 2, "it is accepted")
    issue()
    data_of(sent)
