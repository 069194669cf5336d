"""Beat's schedule: each task as often as it says, whatever becomes of the wall clock, and never a pile of messages."""

from collections import Counter
from collections.abc import Iterator, MutableMapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from celery import Celery
from celery.beat import ScheduleEntry, SchedulingError

from app import queue


class Clocks:
    """The two clocks of a machine: the wall's, which anybody may set, and the one that only runs forward."""

    def __init__(self) -> None:
        self.monotonic_s = 1_000.0
        self.wall = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)

    def advance(self, seconds: float) -> None:
        self.monotonic_s += seconds
        self.wall += timedelta(seconds=seconds)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr("time.monotonic", lambda: clocks.monotonic_s)
    # What Celery's own schedules go by.
    monkeypatch.setattr(Celery, "now", lambda _: clocks.wall)
    return clocks


class Beat:
    """Beat with its real scheduler, from which it writes down what would be sent."""

    def __init__(self, app: Celery, clocks: Clocks) -> None:
        # Imported only now: importing the worker ends a process that has no settings yet.
        self.scheduler = import_module("worker.schedule").SteadyScheduler(app, Producer=object)
        self.scheduler.producer = None
        self.scheduler.apply_async = self._note
        self._clocks = clocks
        self._sent: Counter[str] = Counter()

    def _note(self, entry: ScheduleEntry, **_: object) -> None:
        self._sent[entry.name] += 1

    def run(self, seconds: float) -> Counter[str]:
        """Let beat run for a while: after each tick it sleeps as long as the tick says. Return what it sent."""
        self._sent = Counter()
        until_s = self._clocks.monotonic_s + seconds
        while self._clocks.monotonic_s < until_s:
            self._clocks.advance(max(self.scheduler.tick(), 0.001))  # Going round takes time too.
        return self._sent


@pytest.fixture
def app() -> Iterator[Celery]:
    """Make an app like the service's own, which keeps the broker that it was first used with in this process."""
    with Celery(set_as_current=False) as app:
        app.add_defaults(queue._configuration)
        yield app


@pytest.fixture
def beat(app: Celery, clocks: Clocks, monkeypatch: pytest.MonkeyPatch) -> Beat:
    beat = Beat(app, clocks)
    monkeypatch.setattr(type(beat.scheduler), "_waiting", lambda _: 0)
    return beat


def test_each_task_is_sent_as_often_as_its_entry_says(beat: Beat) -> None:
    sent = beat.run(3_630)
    assert sent["sweep"] == pytest.approx(3_630 / queue.SWEEP_EVERY_S, rel=0.02)
    assert sent["claim-crossed-5"] == pytest.approx(3_630 / 5, rel=0.02)
    assert sent["claim-crossed-30"] == pytest.approx(3_630 / 30, rel=0.02)
    assert sent["forget-idempotency-keys"] == 6
    assert sent["claim-crossed-3600"] == 2


def test_sweeps_and_claims_are_due_as_soon_as_beat_runs_and_nothing_else_is(beat: Beat) -> None:
    claims = {"claim-crossed-5", "claim-crossed-30", "claim-crossed-3600"}
    assert beat.run(queue.SWEEP_EVERY_S / 2) == dict.fromkeys({"sweep"} | claims, 1)
    assert beat.run(queue.SWEEP_EVERY_S) == {"sweep": 1}


def test_crossings_are_looked_for_among_few_often_and_among_all_in_the_end(app: Celery) -> None:
    asked = {
        entry["schedule"].run_every.total_seconds(): entry["kwargs"]["registered_within_s"]
        for entry in app.conf.beat_schedule.values()
        if entry["task"] == queue.CLAIM_CROSSED
    }
    assert asked == {5: 60, 30: 900, 3_600: None}


@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(days=-400), timedelta(hours=1), timedelta(days=400)])
def test_a_wall_clock_that_is_set_while_beat_runs_changes_nothing(beat: Beat, clocks: Clocks, jump: timedelta) -> None:
    before = beat.run(600)
    clocks.wall += jump
    after = beat.run(600)
    assert before["sweep"] >= 290
    assert all(abs(after[name] - before[name]) <= 1 for name in after | before)


def test_no_scheduled_message_expires_by_anybodys_clock() -> None:
    for entry in queue.celery.conf.beat_schedule.values():
        assert entry["options"] == {"queue": queue.SCHEDULED_QUEUE}


def test_nothing_is_sent_while_scheduled_messages_wait_for_a_worker(
    beat: Beat, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = import_module("worker.schedule").SCHEDULED_WAITING_MAX
    monkeypatch.setattr(beat.scheduler, "_waiting", lambda: most)
    assert beat.run(60) == Counter()
    monkeypatch.setattr(beat.scheduler, "_waiting", lambda: most - 1)
    assert beat.run(60)["sweep"] >= 29


@pytest.mark.parametrize("away_at_s", [0, 3_598])
def test_what_was_due_while_the_broker_was_away_is_sent_as_soon_as_it_is_back(
    beat: Beat, monkeypatch: pytest.MonkeyPatch, away_at_s: int
) -> None:
    before = beat.run(away_at_s) if away_at_s else Counter()

    def out_of_reach() -> int:
        raise OSError

    monkeypatch.setattr(beat.scheduler, "_waiting", out_of_reach)
    assert beat.run(5) == Counter()
    monkeypatch.setattr(beat.scheduler, "_waiting", lambda: 0)
    after = beat.run(10)
    assert before["claim-crossed-3600"] + after["claim-crossed-3600"] == (2 if away_at_s else 1)
    assert after["sweep"] <= 6  # What was left out is sent once, however often.


def test_a_message_that_the_broker_does_not_take_is_left_out_like_one_that_nobody_asked_it_for(
    beat: Beat, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = beat.scheduler.apply_async

    def refuse(entry: ScheduleEntry, **_: object) -> None:
        raise SchedulingError(entry.name)

    monkeypatch.setattr(beat.scheduler, "apply_async", refuse)
    assert beat.run(5) == Counter()
    monkeypatch.setattr(beat.scheduler, "apply_async", taken)
    assert beat.run(10)["claim-crossed-3600"] == 1


def test_a_broker_that_is_away_stops_nothing(
    app: Celery, clocks: Clocks, events: list[MutableMapping[str, Any]]
) -> None:
    beat = Beat(app, clocks)  # At the address where nothing listens.
    assert beat.run(2.1) == Counter()
    not_sent = Counter((event["event"], event["task"]) for event in events)
    assert not_sent == {("not_scheduled", queue.SWEEP): 2, ("not_scheduled", queue.CLAIM_CROSSED): 3}
