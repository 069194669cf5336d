"""Requests for drains over a real Redis, and the workers that stay to be woken by one."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.messaging import hints, process_redis
from app.messaging.jobs import Job
from app.messaging.requests import Staying, need_message, note_arrival
from app.settings import settings
from tests.conftest import Servers
from tests.deadline import until

pytestmark = pytest.mark.usefixtures("broker")

ONE, OTHER, LATE = Job(7), Job(8, request_id="request-8"), Job(9)


def nothing() -> None:
    """Do nothing when idle."""


@pytest.fixture
def idle() -> tuple[threading.Event, Callable[[], None]]:
    is_idle = threading.Event()
    return is_idle, is_idle.set


def test_a_drain_is_requested_once_until_a_worker_withdraws_the_request() -> None:
    assert need_message([ONE, ONE]) == [ONE]
    note_arrival(ONE)
    assert need_message([ONE]) == []
    hints.publish(ONE.organization_id, [])  # The drain has found nothing.
    assert need_message([ONE]) == [ONE]


def test_one_message_at_a_time_brings_a_worker_that_takes_what_all_have_asked_for() -> None:
    assert need_message([ONE, OTHER]) == [ONE]
    note_arrival(ONE)
    assert need_message([LATE]) == [LATE]
    staying = Staying()
    taken = []
    while request := staying.wait(at_most_s=0.01, when_idle=nothing):
        taken.append(request)
    assert taken == [OTHER, LATE], "in the order of asking, without what the message has brought"


def test_a_message_that_is_lost_is_sent_again_after_some_seconds() -> None:
    assert need_message([ONE])

    def is_sent() -> bool:
        hints.publish(OTHER.organization_id, [])
        return bool(need_message([OTHER]))

    until(is_sent, "one is sent again", within_s=10)


def test_what_a_worker_gives_back_when_its_turn_ends_is_not_taken_for_an_old_request() -> None:
    assert need_message([ONE])
    note_arrival(ONE)
    assert need_message([ONE], are_noted=True) == [ONE]
    assert Staying().wait(at_most_s=0.01, when_idle=nothing) == ONE


def test_a_request_is_of_one_database_of_redis(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    assert need_message([ONE])
    monkeypatch.setenv("REDIS_URL", servers.redis_url.rpartition("/")[0] + "/9")
    settings.cache_clear()
    process_redis.redis.cache_clear()
    process_redis.redis().flushdb()
    assert need_message([ONE])


def test_a_worker_that_stays_is_woken_without_a_message_by_whoever_needs_a_drain(
    idle: tuple[threading.Event, Callable[[], None]],
) -> None:
    is_idle, note = idle
    with ThreadPoolExecutor() as threads:
        woken = threads.submit(Staying().wait, at_most_s=30, when_idle=note)
        assert is_idle.wait(30)
        assert need_message([OTHER, ONE]) == [ONE], "one worker is woken once"
        assert woken.result(30) == OTHER, "the request brings its id for the log"


def test_a_worker_that_nobody_needs_leaves_and_is_not_woken_any_more() -> None:
    assert Staying().wait(at_most_s=0.05, when_idle=nothing) is None
    assert need_message([ONE]) == [ONE]


def test_a_worker_offers_to_stay_with_its_hint_and_learns_who_has_taken_it_up() -> None:
    staying = Staying()
    assert staying.withdraw() is None
    hints.publish(ONE.organization_id, [1], staying=staying)
    assert need_message([OTHER]) == []
    assert staying.withdraw() == OTHER
    hints.publish(ONE.organization_id, [1], staying=staying)
    assert staying.withdraw() is None, "nobody has"
    assert need_message([ONE]) == [ONE]


def test_no_request_is_lost_between_workers_that_come_and_go_and_fronts_that_ask() -> None:
    """Whoever asked is served by a worker that stays, or one that a message brings."""
    asked = [Job(number) for number in range(1, 601)]
    served: list[Job] = []
    messages: queue.SimpleQueue[Job | None] = queue.SimpleQueue()

    def work() -> None:
        while (message := messages.get()) is not None:
            note_arrival(message)
            staying = Staying()
            asked_for: Job | None = message
            while asked_for:
                served.append(asked_for)
                asked_for = staying.wait(at_most_s=0.001, when_idle=nothing)

    def ask(first: int) -> int:
        sent = [left for request in asked[first::4] for left in need_message([request])]
        for message in sent:
            messages.put(message)
        return len(sent)

    with ThreadPoolExecutor() as threads:
        workers = [threads.submit(work) for _ in range(4)]
        sent = sum(threads.map(ask, range(4)))
        until(lambda: set(served) == set(asked), "each is served", within_s=30)
        for _ in workers:
            messages.put(None)
        for worker in workers:
            worker.result(60)
    assert 0 < sent < len(asked), "some were served by a message, others by a worker that stayed"
    assert process_redis.redis().keys("points:staying*") == []
