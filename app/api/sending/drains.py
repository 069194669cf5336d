"""Asking for drains: all web processes together keep at most one message an organization on its way."""

import time
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
    """The drains that this process asks for."""

    def __init__(self) -> None:
        # Until when (`time.monotonic`) the broker is left alone; 0 once it has taken a message.
        self._left_alone_until = 0.0

    def ask(self, job: Job) -> None:
        """Ask for a drain that issues this batch, unless a requested one will still look at the queue.

        Never fails: the batch is accepted, and a sweep issues it if no message does.
        """
        now = time.monotonic()
        if now < self._left_alone_until:
            return
        if self._left_alone_until:  # This caller tries the broker; the others do not wait with it.
            self._left_alone_until = now + _LEFT_ALONE_S
        if hints.request_drain(job.organization_id):
            is_taken = _submit(job)
            self._left_alone_until = 0.0 if is_taken else time.monotonic() + _LEFT_ALONE_S


def _submit(job: Job) -> bool:
    """Send a message; return whether the broker took it."""
    try:
        return jobs.submit(
            job.organization_id, batch_id=job.batch_id, recipients=job.recipients, request_id=job.request_id
        )
    except Exception as error:  # noqa: BLE001  # The batch is accepted: no error of the broker may fail its caller.
        _log.error("message_not_sent", organization_id=job.organization_id, **logs.kind_of(error))
        return False
