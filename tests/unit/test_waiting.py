"""Waiting for batches, step by step: who is woken by a hint, who by the shared look, and what stops neither."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from redis.exceptions import ConnectionError as RedisAway

from app.api import waiting as module
from app.api.submitting import Job, Submitting
from app.api.waiting import Waiter, Waiting
from app.hints import Hint
from tests.unit.pending import Pending


@pytest.fixture(name="pending")
def _pending(monkeypatch: pytest.MonkeyPatch) -> Pending:
    imagined = Pending()
    imagined.put_behind_waiting(monkeypatch)
    return imagined


@pytest.fixture
def submitting() -> Submitting:
    return Submitting()


@pytest.fixture
def waiting(submitting: Submitting) -> Waiting:
    """Return the waiting of a process whose threads do not run, so that a test takes each of their steps."""
    still = Waiting(submitting)
    still._not_started = []
    return still


def come(waiting: Waiting, batch_id: int, *, recipients: int = 1) -> Waiter:
    waiter = Waiter(recipients)
    waiting.expect(batch_id, waiter)
    return waiter


def is_woken(waiter: Waiter) -> bool:
    """Tell whether somebody has woken a waiter since this was last asked."""
    return waiter.sleep(0)


def test_a_waiter_that_was_woken_before_it_sleeps_sleeps_not_and_only_once() -> None:
    waiter = Waiter(1)
    waiter.wake()
    waiter.wake()
    assert waiter.sleep(10)
    assert not waiter.sleep(0)
    assert not waiter.sleep(-1)  # A deadline that has passed.


def test_a_hint_wakes_everyone_who_waits_for_its_batches_and_nobody_else(waiting: Waiting, pending: Pending) -> None:
    one, same, two, three = (come(waiting, number) for number in (1, 1, 2, 3))
    pending.final = {1, 2, 3}
    waiting.wake([1, 3, 99])
    assert [is_woken(waiter) for waiter in (one, same, two, three)] == [True, True, False, True]
    assert [waiter.is_final for waiter in (one, same, two, three)] == [True, True, False, True]


def test_small_batches_are_read_together_for_all_who_wait_for_them(waiting: Waiting, pending: Pending) -> None:
    one, same, two = come(waiting, 1), come(waiting, 1), come(waiting, 2, recipients=100)
    pending.final = {1, 2}
    waiting.wake([1, 2, 99])
    assert pending.read == [[1, 2]]
    assert one.rows == same.rows == pending.rows_of(1)
    assert two.rows == pending.rows_of(2)


def test_a_large_batch_is_left_to_be_read_by_its_own_request(waiting: Waiting, pending: Pending) -> None:
    small, large = come(waiting, 1), come(waiting, 2, recipients=101)
    pending.final = {1, 2}
    waiting.wake([1, 2])
    assert (pending.read, pending.asked) == ([[1]], [[2]])
    assert small.rows is not None
    assert (large.rows, large.is_final, is_woken(large)) == (None, True, True)


@pytest.mark.parametrize("recipients", [1, 10_000])
def test_a_hint_that_lies_wakes_nobody(waiting: Waiting, pending: Pending, recipients: int) -> None:
    waiter = come(waiting, 1, recipients=recipients)
    waiting.wake([1])
    assert (waiter.is_final, is_woken(waiter)) == (False, False)
    assert pending.final == set()


def test_a_hint_for_nobody_here_asks_the_database_nothing(waiting: Waiting, pending: Pending) -> None:
    come(waiting, 1)
    waiting.wake([2, 3])
    assert (pending.read, pending.asked) == ([], [])


def test_who_has_left_is_neither_woken_nor_asked_about(waiting: Waiting, pending: Pending) -> None:
    stays, left, two = come(waiting, 1), come(waiting, 1), come(waiting, 2)
    waiting.leave(1, left)
    waiting.leave(2, two)
    pending.final = {1, 2}
    waiting.wake([2])
    waiting._look()
    assert [is_woken(waiter) for waiter in (stays, left, two)] == [True, False, False]
    assert (pending.asked, pending.read) == ([[1]], [[1]])


@pytest.mark.usefixtures("pending")
def test_who_leaves_twice_or_never_came_disturbs_nobody(waiting: Waiting) -> None:
    stays, gone = come(waiting, 1), come(waiting, 1)
    for batch_id in (1, 1, 2):
        waiting.leave(batch_id, gone)
    assert waiting._waiters == {1: [stays]}
    waiting.leave(1, stays)
    assert waiting._waiters == {}


def test_one_look_asks_about_every_pending_batch_and_wakes_the_final_ones(waiting: Waiting, pending: Pending) -> None:
    pending.final = {2}
    one, two, same = come(waiting, 1), come(waiting, 2), come(waiting, 2)
    waiting._look()
    assert [is_woken(waiter) for waiter in (one, two, same)] == [False, True, True]
    assert (pending.asked, pending.read) == ([[1, 2]], [[2]])


def test_no_query_is_made_while_nobody_waits(waiting: Waiting, pending: Pending) -> None:
    waiting.leave(1, come(waiting, 1))
    waiting._look()
    assert pending.asked == []
    assert not waiting._something_to_do.is_set()  # So the next look blocks until somebody comes.
    come(waiting, 2)
    assert waiting._something_to_do.is_set()


def test_between_two_looks_at_the_rows_there_is_a_pause(
    waiting: Waiting, pending: Pending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_EVERY_S", 3_600)
    waiting._looked_at = -3_600
    come(waiting, 1)
    waiting._look()
    waiting._look()
    assert pending.asked == [[1]]


def test_somebody_who_comes_in_the_middle_of_a_look_is_not_forgotten_until_the_next(
    waiting: Waiting, submitting: Submitting, pending: Pending, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Coming(Submitting):
        @property
        def is_idle(self) -> bool:
            waiting._something_to_do.set()  # Another thread has asked, a moment after this one looked.
            return True

    monkeypatch.setattr(waiting, "_submitting", Coming())
    waiting.leave(1, come(waiting, 1))
    waiting._look()
    assert waiting._something_to_do.is_set()
    assert pending.asked == []


def test_the_looks_go_on_while_something_is_held_back(
    waiting: Waiting, submitting: Submitting, pending: Pending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.queue.submit", lambda _id, **_: True)
    submitting.ask(7, {1: Job(1, "r")})
    waiting.start()
    waiting._look()
    assert waiting._something_to_do.is_set()
    assert pending.asked == []


def test_a_database_that_is_away_is_asked_again(waiting: Waiting, pending: Pending) -> None:
    pending.final, pending.is_away = {1}, True
    waiter = come(waiting, 1)
    waiting.wake([1])
    waiting._look()
    assert not is_woken(waiter)
    pending.is_away = False
    waiting._look()
    assert is_woken(waiter)


@pytest.mark.parametrize("is_away", [False, True])
def test_hints_that_stop_coming_are_listened_for_again(
    waiting: Waiting, submitting: Submitting, pending: Pending, monkeypatch: pytest.MonkeyPatch, *, is_away: bool
) -> None:
    hint = Hint(organization_id=7, batch_ids=[1], has_left=True)
    heard: list[Hint] = []

    def listen() -> Iterator[Hint | None]:
        yield None
        yield hint
        raise RedisAway

    monkeypatch.setattr("app.hints.listen", listen)
    monkeypatch.setattr(submitting, "hear", heard.append)
    pending.final, pending.is_away = {1}, is_away
    waiter = come(waiting, 1)
    waiting._listen()  # It returns, to be called again, and does not raise.
    assert is_woken(waiter) is not is_away
    assert heard == [hint]  # That a drain has left is heard whether or not the rows can be read.


@pytest.mark.parametrize("error", [RedisAway, ValueError])
def test_while_hints_are_not_listened_for_nobody_relies_on_hearing_them(
    waiting: Waiting, submitting: Submitting, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    told: list[bool] = []

    def listen() -> Iterator[Hint | None]:
        assert told == []  # What is connected hears nothing yet.
        yield None
        assert told == [True]
        raise error

    monkeypatch.setattr("app.hints.listen", listen)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(submitting, "hears_hints", told.append)
    with suppress(ValueError):
        waiting._listen()
    assert told == [True, False]


def test_a_redis_that_is_away_is_left_alone_for_a_while(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    def listen() -> Iterator[Hint | None]:
        yield None
        raise RedisAway

    pauses_s: list[float] = []
    monkeypatch.setattr("app.hints.listen", listen)
    monkeypatch.setattr("app.api.waiting._LISTEN_AGAIN_AFTER_S", 7.0)
    monkeypatch.setattr("time.sleep", pauses_s.append)
    waiting._listen()
    assert pauses_s == [7]


@pytest.mark.usefixtures("pending")
def test_an_error_nobody_thought_of_does_not_end_a_thread() -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(len(calls))
        if len(calls) < 3:
            raise ValueError("unthought of")
        raise SystemExit  # The only way out for a test.

    with pytest.raises(SystemExit):
        module._for_ever(work)
    assert calls == [0, 1, 2]


def test_a_batch_that_was_heard_of_before_anybody_waited_for_it_is_known_to_be_so(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listen() -> Iterator[Hint]:
        yield Hint(organization_id=7, batch_ids=[1, 2], has_left=True)
        raise RedisAway

    monkeypatch.setattr("app.hints.listen", listen)
    waiting._listen()
    assert waiting.expect(1, Waiter(1)) is True
    assert waiting.expect(3, Waiter(1)) is False


def test_what_was_heard_of_is_forgotten_oldest_first(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED_MAX", 2)
    for batch_id in (1, 2, 3):
        waiting._remember([batch_id])
    assert [waiting.expect(batch_id, Waiter(1)) for batch_id in (1, 2, 3)] == [False, True, True]
