"""Asking for drains: all web processes together keep at most one message per organization on its way."""

import time
from typing import NamedTuple

from app import logs
from app.messaging import jobs, requests
from app.messaging.requests import Request

# After a failure, how long to send the broker nothing: each attempt costs its timeout.
_LEFT_ALONE_S = 1.0

_log = logs.logger()


class Job(NamedTuple):
    """A message. Its batch (None for a reversal) is for Flower and the logs: the drain issues all queued batches."""

    organization_id: int
    batch_id: int | None
    recipients: int | None
    request_id: str | None


class Drains:
    """The drains that one process asks for."""

    def __init__(self) -> None:
        # Until when (`time.monotonic`) the broker is sent nothing; 0 once it has taken a message.
        self._left_alone_until = 0.0

    def ask(self, *jobs: Job) -> None:
        """Ask for drains that issue these batches, unless requested ones will still look at the queues.

        Never fails: the batches are accepted, and a sweep issues them if no message does.
        """
        now = time.monotonic()
        if now < self._left_alone_until:
            return
        if self._left_alone_until:  # This request tries the broker; the others do not wait for the result.
            self._left_alone_until = now + _LEFT_ALONE_S
        needing = requests.need_message([Request(job.organization_id, job.request_id) for job in jobs])
        by_organization = {job.organization_id: job for job in jobs}
        for request in needing:
            is_taken = _submit(by_organization[request.organization_id])
            self._left_alone_until = 0.0 if is_taken else time.monotonic() + _LEFT_ALONE_S
            if not is_taken:
                return  # Each further message would wait for the broker as long.


def _submit(job: Job) -> bool:
    """Send a message; return whether the broker took it."""
    try:
        return jobs.submit(
            job.organization_id, batch_id=job.batch_id, recipients=job.recipients, request_id=job.request_id
        )
    except Exception as error:  # noqa: BLE001  # The batch is accepted, so no error of the broker may reach the caller.
        _log.error("message_not_sent", organization_id=job.organization_id, **logs.kind_of(error))
        return False


drains = Drains()
