"""Asking for drains: at most one message an organization is on its way from this process."""

import threading
import time
from typing import NamedTuple

from app import logs, queue
from app.hints import Hint

# Far longer than a message waits and its drain takes: after that, one of them is taken for lost.
_LOST_AFTER_S = 1.0
# Each attempt at a broker that is away costs its time limit.
_BROKER_AWAY_S = 1.0

_log = logs.logger()


class Job(NamedTuple):
    """The batch that a message names, for those who watch the jobs; its drain takes all that is queued."""

    batch_id: int
    recipients: int
    request_id: str | None


class _Message:
    """A message on its way: the batch it names, when it was sent, and the newest batch accepted since."""

    __slots__ = ("accepted_since", "batch_id", "sent_at")

    def __init__(self, batch_id: int, sent_at: float) -> None:
        self.batch_id = batch_id
        self.sent_at = sent_at
        self.accepted_since: Job | None = None


class Drains:
    """The drains that this process has asked for, by organization.

    A drain takes whatever is queued, and looks once more before it leaves. So a batch accepted while a
    message is on its way needs none, unless that message is worked off without it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: dict[int, _Message] = {}
        self._broker_away_until = 0.0

    def ask(self, organization_id: int, job: Job) -> None:
        """Ask for a drain that issues this batch, now or once the message on its way is worked off.

        Never fails: the batch is accepted, and the sweep brings what no message does.
        """
        now = time.monotonic()
        with self._lock:
            message = self._messages.get(organization_id)
            if message is not None and message.sent_at > now - _LOST_AFTER_S:
                message.accepted_since = max(job, message.accepted_since or job)
                return
            if now < self._broker_away_until:
                return
            self._messages[organization_id] = _Message(job.batch_id, now)
        if not _submit(organization_id, job):
            with self._lock:
                self._broker_away_until = time.monotonic() + _BROKER_AWAY_S
                self._messages.pop(organization_id, None)

    def hear(self, hint: Hint) -> None:
        """Take note of what a drain has told, and ask again for a batch that our message was worked off without."""
        with self._lock:
            message = self._messages.get(hint.organization_id)
            if message is None:
                return
            since = message.accepted_since
            if since is not None and since.batch_id in hint.batch_ids:
                since = message.accepted_since = None
            if hint.asked_for != message.batch_id or not (hint.has_left or hint.found_owner):
                return
            del self._messages[hint.organization_id]
        if since is not None:
            self.ask(hint.organization_id, since)


def _submit(organization_id: int, job: Job) -> bool:
    """Send a message; tell whether the broker took it."""
    try:
        return queue.submit(
            organization_id, batch_id=job.batch_id, recipients=job.recipients, request_id=job.request_id
        )
    except Exception as error:  # noqa: BLE001  # No fault of a broker may fail a caller whose batch is accepted.
        _log.error("message_not_sent", organization_id=organization_id, **logs.kind_of(error))
        return False
