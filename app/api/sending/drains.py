"""Asking for drains: at most one message an organization is on its way, from all processes together."""

import time
from typing import NamedTuple

from app import hints, logs, queue

# Each attempt at a broker that is away costs its time limit.
_BROKER_AWAY_S = 1.0

_log = logs.logger()


class Job(NamedTuple):
    """The batch that a message names, for those who watch the jobs; its drain takes all that is queued."""

    organization_id: int
    batch_id: int
    recipients: int
    request_id: str | None


class Drains:
    """The drains that this process asks for."""

    def __init__(self) -> None:
        self._broker_away_until = 0.0

    def ask(self, job: Job) -> None:
        """Ask for a drain that issues this batch, unless one is requested that has still to look at the queue.

        Never fails: the batch is accepted, and the sweep brings what no message does.
        """
        if time.monotonic() < self._broker_away_until or not hints.request_drain(job.organization_id):
            return
        if not _submit(job):
            self._broker_away_until = time.monotonic() + _BROKER_AWAY_S


def _submit(job: Job) -> bool:
    """Send a message; tell whether the broker took it."""
    try:
        return queue.submit(
            job.organization_id, batch_id=job.batch_id, recipients=job.recipients, request_id=job.request_id
        )
    except Exception as error:  # noqa: BLE001  # No fault of a broker may fail a caller whose batch is accepted.
        _log.error("message_not_sent", organization_id=job.organization_id, **logs.kind_of(error))
        return False
