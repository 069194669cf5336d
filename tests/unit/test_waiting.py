"""Waiting for batches, step by step: who is woken by a hint, who by the shared look, and what stops neither."""

from collections.abc import Iterator

import pytest
from redis.exceptions import ConnectionError as RedisAway

from app.api import waiting as module
from app.api.waiting import Waiting
from tests.unit.pending import Rows


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    imagined = Rows()
    imagined.put_behind_waiting(monkeypatch)
    return imagined


@pytest.fixture
def waiting() -> Waiting:
    """Return the waiting of a process whose threads do not run, so that a test takes each of their steps."""
    still = Waiting()
    still._started = True
    return still


@pytest.mark.usefixtures("rows")
def test_a_hint_wakes_everyone_who_waits_for_its_batches_and_nobody_else(waiting: Waiting) -> None:
    with waiting.expect(1) as one, waiting.expect(1) as same, waiting.expect(2) as two, waiting.expect(3) as three:
        waiting.wake([1, 3, 99])
        assert [final.is_set() for final in (one, same, two, three)] == [True, True, False, True]


def test_who_has_left_is_neither_woken_nor_asked_about(waiting: Waiting, rows: Rows) -> None:
    with waiting.expect(1) as stays:
        with waiting.expect(1) as left, waiting.expect(2):
            pass
        waiting.wake([1, 2])
        waiting._poll()
    assert (stays.is_set(), left.is_set()) == (True, False)
    assert rows.asked == [[1]]


@pytest.mark.usefixtures("rows")
def test_who_is_thrown_out_of_the_wait_leaves_nothing_behind(waiting: Waiting) -> None:
    def fail() -> None:
        with waiting.expect(1):
            raise RuntimeError("the queue is on fire")

    with pytest.raises(RuntimeError):
        fail()
    assert waiting._waiters == {}


def test_one_look_asks_about_every_pending_batch_and_wakes_the_final_ones(waiting: Waiting, rows: Rows) -> None:
    rows.final = {2}
    with waiting.expect(1) as one, waiting.expect(2) as two, waiting.expect(2) as same:
        waiting._poll()
        assert [final.is_set() for final in (one, two, same)] == [False, True, True]
    assert rows.asked == [[1, 2]]


def test_no_query_is_made_while_nobody_waits(waiting: Waiting, rows: Rows) -> None:
    with waiting.expect(1):
        pass
    waiting._poll()
    assert rows.asked == []
    assert not waiting._somebody_waits.is_set()  # So the next look blocks until somebody comes.
    with waiting.expect(2):
        assert waiting._somebody_waits.is_set()


def test_a_database_that_is_away_is_asked_again(waiting: Waiting, rows: Rows) -> None:
    rows.final, rows.is_away = {1}, True
    with waiting.expect(1) as final:
        waiting._poll()
        assert not final.is_set()
        rows.is_away = False
        waiting._poll()
        assert final.is_set()


@pytest.mark.usefixtures("rows")
def test_hints_that_stop_coming_are_listened_for_again(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    def listen() -> Iterator[list[int]]:
        yield [1]
        raise RedisAway

    monkeypatch.setattr("app.hints.listen", listen)
    with waiting.expect(1) as final:
        waiting._listen()  # It returns, to be called again, and does not raise.
        assert final.is_set()


@pytest.mark.usefixtures("rows")
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
