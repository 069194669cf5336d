"""A sign of life: beat and the workers touch the file ALIVE_FILE, if it is set, and a health check reads its age.

Beat touches it each time it schedules, and notes it for the metrics; a worker from the loop that takes messages, so one
that hangs does not.
"""

import os
from pathlib import Path
from typing import Any

from celery import beat, bootsteps

from app.messaging import worker_counters
from app.messaging.jobs import celery

_EVERY_S = 10.0


def _touch() -> None:
    if file := os.environ.get("ALIVE_FILE"):
        Path(file).touch()


class Alive(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery ships no types.
    requires = ("celery.worker.components:Timer",)

    def start(self, parent: Any) -> None:
        parent.timer.call_repeatedly(_EVERY_S, _touch)


class Scheduler(beat.Scheduler):  # type: ignore[misc]
    """In memory, as Celery's own: a schedule on disk would go wrong after a change of the clock."""

    def tick(self, *arguments: Any, **named: Any) -> float:
        _touch()
        worker_counters.note_beat()
        pause: float = super().tick(*arguments, **named)
        return pause


celery.steps["worker"].add(Alive)
