"""Accepting: the waiting sends of one process are accepted by one statement and one commit."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from app.batches import accept as acceptance
from app.batches.accept import Acceptance, DayIsOver, Send
from app.batches.batch import QUEUED
from app.messaging.jobs import Job
from app.postgres.database import is_away, single_statement, transaction

# The limits keep the statement short. If it fails, few sends are affected.
_GROUP_SENDS_MAX = 64
_GROUP_RECIPIENTS_MAX = 10_000
# Callers who were answered together usually send again soon: one within the first time, all within the second.
_NEXT_WITHIN_S = 0.004
_ALL_WITHIN_S = 0.02


class _Member:
    """A send that waits to be accepted. `woken` is set when it has an outcome, or may accept the next group."""

    __slots__ = ("outcome", "recipients", "request_id", "send", "woken")

    def __init__(self, send: Send, request_id: str) -> None:
        self.send = send
        self.request_id = request_id
        self.recipients = len(send.request.emails)
        self.outcome: Acceptance | Exception | None = None
        self.woken = threading.Event()


class Ask(Protocol):
    """Asks for the drains of these organizations; never fails."""

    def __call__(self, *jobs: Job) -> None: ...


Outcomes = Sequence[Acceptance | Exception]


class Accepting:
    """The sends of one process that are not accepted yet, in order of arrival; `accept_together` accepts a group.

    The thread that holds `_group_lock` accepts all waiting sends as one group, and asks for their drains. Sends that
    arrive meanwhile form the next group.
    """

    def __init__(self, ask: Ask, accept_together: Callable[[Sequence[Send]], Outcomes]) -> None:
        self._ask = ask
        self._accept_together = accept_together
        self._waiting: deque[_Member] = deque()
        self._group_lock = threading.Lock()
        # How many sends this process has: those that wait to be accepted, and those that wait for their batch.
        self._count_lock = threading.Lock()
        self._present = 0
        self._lately_present = 0
        self._gathers: _Member | None = None

    def accept(self, send: Send, request_id: str) -> Acceptance:
        """Accept a send, together with the others that wait, and ask for its drain.

        Raises:
            PointsError: the send is not accepted.
            SQLAlchemyError: PostgreSQL is away; whether the send was accepted may be unknown.
        """
        member = _Member(send, request_id)
        self._waiting.append(member)
        gatherer = self._gathers
        if gatherer and self._is_complete():
            gatherer.woken.set()
        while member.outcome is None:
            if self._group_lock.acquire(blocking=False):
                group: list[_Member] = []
                try:
                    group = self._accept_group(member)
                finally:
                    self._group_lock.release()
                    self._wake_next()
                self._ask_for_drains(group)
            else:
                member.woken.wait()
                member.woken.clear()
        if isinstance(member.outcome, Exception):
            raise member.outcome
        return member.outcome

    @contextmanager
    def present(self) -> Iterator[None]:
        """Count a send as present for the block, from its arrival to its answer."""
        with self._count_lock:
            self._present += 1
        try:
            yield
        finally:
            with self._count_lock:
                self._present -= 1

    def _accept_group(self, leader: _Member) -> list[_Member]:
        self._await_others(leader)
        group = self._next_group()
        outcomes: Outcomes = [RuntimeError("The group was not accepted.")] * len(group)
        try:
            outcomes = self._accept_together([member.send for member in group])
        finally:  # After an error too, or members would wait without end.
            for member, outcome in zip(group, outcomes, strict=True):
                member.outcome = outcome
                member.woken.set()
        return group

    def _ask_for_drains(self, group: Sequence[_Member]) -> None:
        """Ask for one drain for each organization of a group, naming its newest batch."""
        jobs = {
            member.outcome.organization_id: Job(
                member.outcome.organization_id, member.outcome.batch_id, member.recipients, member.request_id
            )
            for member in group
            if isinstance(member.outcome, Acceptance) and member.outcome.status == QUEUED
        }
        if jobs:
            self._ask(*jobs.values())

    def _await_others(self, leader: _Member) -> None:
        """Wait while sends keep arriving, until as many are present as lately. Who is alone waits for nobody."""
        ends, seen = time.monotonic() + _ALL_WITHIN_S, 0
        self._gathers = leader
        while not self._is_complete() and seen < len(self._waiting) and time.monotonic() < ends:
            seen = len(self._waiting)
            leader.woken.clear()
            leader.woken.wait(_NEXT_WITHIN_S)
        self._gathers = None
        self._lately_present = max(self._present, self._lately_present // 2)

    def _is_complete(self) -> bool:
        return self._present >= self._lately_present or len(self._waiting) >= _GROUP_SENDS_MAX

    def _next_group(self) -> list[_Member]:
        group: list[_Member] = []
        recipients = 0
        while self._waiting and len(group) < _GROUP_SENDS_MAX:
            recipients += self._waiting[0].recipients
            if group and recipients > _GROUP_RECIPIENTS_MAX:
                break
            group.append(self._waiting.popleft())
        return group

    def _wake_next(self) -> None:
        """Wake the oldest waiting send. Call it after releasing `_group_lock`: later sends take the lock themselves."""
        with suppress(IndexError):
            self._waiting[0].woken.set()


def accept_together(sends: Sequence[Send]) -> Outcomes:
    """Accept a group and return each send's outcome. If one makes the statement fail, they are accepted one by one.

    A key with bounds is an `InvalidKey` here.
    """
    return _together(sends, _accept)


def accept_bounded_together(sends: Sequence[Send]) -> Outcomes:
    """Accept a group of sends of keys with bounds, as `accept_together`. Any other key is an `InvalidKey` here."""
    return _together(sends, _accept_bounded)


_Accept = Callable[[Sequence[Send]], Sequence[Acceptance | Exception | None]]


def _accept(sends: Sequence[Send]) -> Sequence[Acceptance | Exception | None]:
    if any(send.request.send_at for send in sends):
        with transaction() as connection:
            acceptance.lock_schedules(connection, sends)
            return acceptance.accept(connection, sends)
    with single_statement() as connection:
        return acceptance.accept(connection, sends)


def _accept_bounded(sends: Sequence[Send]) -> Sequence[Acceptance | Exception | None]:
    try:
        with transaction() as connection:
            if any(send.request.send_at for send in sends):
                acceptance.lock_schedules(connection, sends)
            return acceptance.accept_within_limits(connection, sends)
    except DayIsOver:
        return _accept_bounded(sends)


def _together(sends: Sequence[Send], accept: _Accept) -> Outcomes:
    if not sends:
        return []
    try:
        outcomes = accept(sends)
    except SQLAlchemyError as error:
        if len(sends) == 1 or is_away(error):
            return [error] * len(sends)
        return _one_by_one(sends, accept)
    # None: another request took the idempotency key at the same time. Its batch exists now, so ask again.
    return [outcome or _together([send], accept)[0] for send, outcome in zip(sends, outcomes, strict=True)]


def _one_by_one(sends: Sequence[Send], accept: _Accept) -> Outcomes:
    outcomes: list[Acceptance | Exception] = []
    for send in sends:
        outcomes += _together([send], accept)
        last = outcomes[-1]
        if isinstance(last, Exception) and is_away(last):  # Each of the others would wait for the same timeout.
            return outcomes + [last] * (len(sends) - len(outcomes))
    return outcomes
