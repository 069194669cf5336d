"""Requests for drains over a real Redis, and the workers that stay to be woken by one."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.messaging import hints, process_redis
from app.messaging.requests import Request, Staying, need_message
from app.settings import settings
from tests.conftest import Servers
from tests.deadline import until

pytestmark = pytest.mark.usefixtures("broker")

ONE, OTHER = Request(7), Request(8, "request-8")


def nothing() -> None:
    """Do nothing when idle."""


@pytest.fixture
def idle() -> tuple[threading.Event, Callable[[], None]]:
    is_idle = threading.Event()
    return is_idle, is_idle.set


def test_a_drain_is_requested_once_until_a_worker_withdraws_the_request() -> None:
    assert need_message([ONE, ONE, OTHER]) == [ONE, OTHER]
    hints.publish(ONE.organization_id, [])  # The drain has found nothing.
    assert need_message([ONE, OTHER]) == [ONE]


def test_a_request_whose_message_was_lost_is_forgotten_after_a_second() -> None:
    assert need_message([ONE])
    until(lambda: need_message([ONE]), "it can be requested again", within_s=10)


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
    """Whoever asked is served by a worker that was woken, or was told to send a message: never neither, never both."""
    asked = [Request(number) for number in range(1, 2_001)]
    served: list[Request] = []
    are_asking = threading.Event()

    def work() -> None:
        while not are_asking.is_set():
            if woken := Staying().wait(at_most_s=0.001, when_idle=nothing):
                served.append(woken)

    def ask(first: int) -> list[Request]:
        return [left for request in asked[first::4] for left in need_message([request])]

    with ThreadPoolExecutor() as threads:
        workers = [threads.submit(work) for _ in range(4)]
        sent = [left for messages in threads.map(ask, range(4)) for left in messages]
        are_asking.set()
        for worker in workers:
            worker.result(60)
    assert sorted(served + sent) == asked
    assert served, "some were woken"
    assert sent, "some came while no worker stayed"
    assert process_redis.redis().keys("points:staying*") == []
