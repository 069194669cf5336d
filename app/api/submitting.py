"""Asking for drains: one message for all the sends of an organization that come while its drain runs.

A drain takes whatever is queued, and looks again before it leaves. So while a message is on its way, or
its drain at work, another one would find nothing to do: it is held back until that message is done with,
and then sent only for batches that no drain has issued. A hint that is lost costs the time of
`_HELD_BACK_S`. So does a message, if sends have come after it; else the sweep brings the batches.

The web processes of one gunicorn see each other's messages by their marks. One that hears the hints holds
back behind them too, until any drain of the organization is heard to have left (decision 15).

Drains that others have asked for issue our batches as well. A message of ours is on its way all the same, and
no other is sent before it is done with: else messages would wait in the broker in ever greater numbers, each
behind the others, as soon as workers are slower than fronts (decision 11).

A message takes a worker longer to begin with than PostgreSQL takes to accept. So the first one goes while it
does; should its drain be too early, another is asked for after the commit (decision 12).
"""

import secrets
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from app import logs, queue
from app.api.marks import Marks
from app.hints import Hint

# Far longer than a message waits and its drain takes, unless one of them is lost or there is far too much to do:
# and then more messages would make it worse.
_HELD_BACK_S = 1.0
# A broker that did not take a message is left alone for a while, by all organizations: each attempt costs its
# time limit, and the thread that makes it has others to serve.
_BROKER_AWAY_S = 1.0
# After a drain that was asked for ahead of its batch's commit and began before it, no other is for so long.
_NOT_AHEAD_FOR_S = 1.0

# A message that goes ahead is known by a number that nobody else draws; an id has 63 bits.
_NUMBER_BITS = 62

# What a process keeps of an organization's batches, so that a broker that is away for hours does not fill its memory.
_HELD_MAX = 1_000

_log = logs.logger()


class Job(NamedTuple):
    """What the people see who watch the jobs: how many recipients, and whose request it was."""

    recipients: int
    request_id: str


class _Asked:
    """An organization whose drain was asked for, by a message that may be on its way.

    `message` is the number that it is known by, None once it is known to have found an owner, or not sent; `until` is
    for how long that counts; `held` are the batches that have come since, by id. `relies_on` is the message of another
    web process, by its mark, where none of ours is on its way.

    While it `is_ahead` its own batches are not known, so it is kept though its drain `is_done`; `issued` are those that
    were heard of meanwhile, by id.
    """

    __slots__ = ("another_has_left", "held", "is_ahead", "is_done", "issued", "message", "relies_on", "until")

    def __init__(self, message: int | None, until: float, *, relies_on: int | None = None) -> None:
        self.message = message
        self.relies_on = relies_on
        self.until = until
        self.held: dict[int, Job] = {}
        self.is_ahead = False
        self.is_done = False
        self.issued: set[int] = set()
        self.another_has_left = False

    def is_over(self, hint: Hint) -> bool:
        """Take note of a hint; tell whether what was asked for is over: then whatever comes needs a message.

        A message that has found an owner relies on it, and the owner says when it leaves. Should another drain have
        left since the message was sent, it may have been that owner, heard of first: then nobody is relied on. What
        was heard before another process's message was relied on is not known: once that has found an owner, nobody is.
        """
        is_ours = self.message is not None and hint.asked_for == self.message
        if hint.has_left:
            self.another_has_left = True
            return is_ours or self.message is None
        if hint.found_owner and is_ours:
            self.message = None
            return self.another_has_left
        return hint.found_owner and self.relies_on is not None and hint.asked_for == self.relies_on

    def hold(self, batches: Mapping[int, Job]) -> None:
        """Hold batches back, but for the issued. Of very many the newest: a drain takes all there are, oldest first."""
        self.held.update({batch_id: job for batch_id, job in batches.items() if batch_id not in self.issued})
        while len(self.held) > _HELD_MAX:
            del self.held[next(iter(self.held))]


class Submitting:
    """What one process has asked the workers for, and holds back.

    Make it before the processes are forked: then they see each other's marks.
    """

    def __init__(self, marks: Marks | None = None) -> None:
        self._marks = marks or Marks()
        # Since when hints are heard: whoever is deaf does not hear that a message of others is done with.
        self._hears_since: float | None = None
        self._lock = threading.Lock()
        self._asked: dict[int, _Asked] = {}
        self._broker_away_until = 0.0
        self._not_ahead_until = 0.0

    @property
    def is_idle(self) -> bool:
        return not self._asked

    def hears_hints(self, does: bool) -> None:
        """Tell whether this process hears what drains say."""
        if does != (self._hears_since is not None):
            self._hears_since = time.monotonic() if does else None

    def ask(self, organization_id: int, batches: Mapping[int, Job], *, was_ahead: bool = False) -> None:
        """Have these batches of an organization, by their ids, issued.

        `was_ahead` where their drain was asked for ahead; there may be none of them then: it was in vain.
        """
        with self._lock:
            asked = self._asked.get(organization_id)
            if asked is not None:
                now = time.monotonic()
                asked.hold(batches)
                if was_ahead:
                    asked.is_ahead = False
                if asked.is_done:
                    del self._asked[organization_id]
                    if was_ahead and asked.held:  # It came too early.
                        self._not_ahead_until = now + _NOT_AHEAD_FOR_S
                elif now < asked.until:
                    return
                if not asked.held:
                    return
                batches = asked.held
            elif not batches:
                return
            elif (message := self._message_of_others(organization_id)) is not None:
                asked = _Asked(None, time.monotonic() + _HELD_BACK_S, relies_on=message)
                asked.hold(batches)
                self._asked[organization_id] = asked
                return
            self._note(organization_id, next(iter(batches)))
        self._send_for(organization_id, batches)

    def ask_ahead(self, organization_id: int, job: Job) -> bool:
        """Have a drain begin that shall find what PostgreSQL is just accepting, and tell whether; then `ask` as always.

        A drain that comes too early finds nothing and leaves. Then `ask` sends another message, or `hear` does. Who is
        deaf would not know of it.
        """
        with self._lock:
            if self._hears_since is None:
                return False
            now = time.monotonic()
            # A broker that did not take the last message may keep us waiting, and all who are accepted with this.
            if organization_id in self._asked or now < self._not_ahead_until or self._broker_away_until:
                return False
            if self._message_of_others(organization_id) is not None:
                return False
            message = -1 - secrets.randbits(_NUMBER_BITS)
            self._note(organization_id, message).is_ahead = True
        self._send(organization_id, message, job, {})
        return True

    def hear(self, hint: Hint) -> None:
        """Take note of what a drain has issued, and ask again if our message is done with and has left some behind."""
        with self._lock:
            # Under the lock: who has not heard this hint when it sees the mark will hear it, and ask.
            if hint.has_left or hint.found_owner:
                self._marks.remove(hint.organization_id, message=hint.asked_for)
            asked = self._asked.get(hint.organization_id)
            if asked is None:
                return
            for batch_id in hint.batch_ids:
                asked.held.pop(batch_id, None)
            if asked.is_ahead:
                asked.issued.update(hint.batch_ids)
            if not asked.is_over(hint):
                return
            if asked.is_ahead and not asked.held:
                asked.is_done = True  # `ask` will know whether it came too early.
                return
            del self._asked[hint.organization_id]
            if not asked.held:
                return
            self._note(hint.organization_id, next(iter(asked.held)))
        self._send_for(hint.organization_id, asked.held)

    def tick(self) -> None:
        """Ask again for what was held back too long: the message or the hint was lost, or the drain takes long."""
        now = time.monotonic()
        with self._lock:
            late = {number: asked.held for number, asked in self._asked.items() if asked.until <= now}
            for organization_id, held in late.items():
                del self._asked[organization_id]
                if held:
                    self._note(organization_id, next(iter(held)))
        for organization_id, held in late.items():
            if held:
                self._send_for(organization_id, held)

    def _message_of_others(self, organization_id: int) -> int | None:
        hears_since = self._hears_since
        if hears_since is None:
            return None
        return self._marks.message(organization_id, since=max(hears_since, time.monotonic() - _HELD_BACK_S))

    def _note(self, organization_id: int, message: int) -> _Asked:
        now = time.monotonic()
        noted = self._asked[organization_id] = _Asked(message, now + _HELD_BACK_S)
        self._marks.put(organization_id, message=message, now=now)
        return noted

    def _send_for(self, organization_id: int, batches: Mapping[int, Job]) -> None:
        """Send one message for all; its batch and request are the first of them, its recipients everybody's."""
        batch_id, first = next(iter(batches.items()))
        recipients = sum(job.recipients for job in batches.values())
        self._send(organization_id, batch_id, Job(recipients, first.request_id), batches)

    def _send(self, organization_id: int, message: int, job: Job, batches: Mapping[int, Job]) -> None:
        """Send a message for these batches, which are held back where the broker does not take it."""
        now = time.monotonic()
        if now >= self._broker_away_until:
            if _submit(organization_id, message, job):
                self._broker_away_until = 0.0
                return
            now = time.monotonic()
            self._broker_away_until = now + _BROKER_AWAY_S
        with self._lock:
            self._marks.remove(organization_id, message=message)
            asked = self._asked.setdefault(organization_id, _Asked(None, 0))
            asked.message, asked.until = None, max(now, self._broker_away_until)
            asked.hold(batches)


def _submit(organization_id: int, message: int, job: Job) -> bool:
    """Submit, and tell whether the broker took it. No fault of a broker may fail a caller whose batch is accepted."""
    try:
        return queue.submit(organization_id, batch_id=message, recipients=job.recipients, request_id=job.request_id)
    except Exception as error:  # noqa: BLE001
        _log.error("message_not_sent", organization_id=organization_id, **logs.kind_of(error))
        return False
