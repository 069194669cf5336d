"""Asking for drains: all web processes together keep at most one message an organization on its way."""

import time
from queue import SimpleQueue
from typing import NamedTuple

from app import logs
from app.messaging import hints, jobs

# How long to leave a broker alone after it failed, since each attempt costs its timeout.
_LEFT_ALONE_S = 1.0

_log = logs.logger()


class Job(NamedTuple):
    """The batch that a message names, shown in Flower and the logs; None for a reversal. The drain takes everything
    that is queued."""

    organization_id: int
    batch_id: int | None
    recipients: int | None
    request_id: str | None


class Drains:
    """The drains that this process asks for. `send` needs a thread of its own: no send waits for a silent broker."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        # Until when (`time.monotonic`) the broker is left alone.
        self._left_alone_until = 0.0

    def ask(self, job: Job) -> None:
        """Ask for a drain that issues this batch. Never fails, and never waits: a sweep brings what no message does."""
        self._jobs.put(job)

    def send(self) -> None:
        """Send the next message, unless a requested drain will still look at the queue."""
        job = self._jobs.get()
        if time.monotonic() >= self._left_alone_until and hints.request_drain(job.organization_id) and not _submit(job):
            self._left_alone_until = time.monotonic() + _LEFT_ALONE_S


def _submit(job: Job) -> bool:
    """Send a message; return whether the broker took it."""
    try:
        return jobs.submit(
            job.organization_id, batch_id=job.batch_id, recipients=job.recipients, request_id=job.request_id
        )
    except Exception as error:  # noqa: BLE001  # The batch is accepted: no error of the broker may fail its caller.
        _log.error("message_not_sent", organization_id=job.organization_id, **logs.kind_of(error))
        return False
