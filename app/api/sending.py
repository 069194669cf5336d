"""Sending: the sends that come together are accepted together, and each waits for its own batch.

The first send that comes becomes the leader: it has PostgreSQL accept whatever is there, in one
statement and one commit. What comes meanwhile is the next group. Alone, a send leads itself and waits
for nobody; among many, a group costs little more than one of them would.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from app import api_keys, logs
from app.acceptance import Acceptance, Send
from app.api.accepting import accept_group
from app.api.gathering import Gathering
from app.api.places import Places
from app.api.submitting import Job, Submitting
from app.api.waiting import Rows, Waiter, Waiting
from app.batches import QUEUED
from app.database import is_away, transaction

# How often somebody who is not accepted yet looks up from its sleep; it is woken when there is something to see.
_ACCEPTED_WITHIN_S = 0.1
# Whoever waited so long for its turn to be accepted has waited for a PostgreSQL that does not answer.
_OVERDUE_S = 1.0
# More of them take PostgreSQL longer to accept than a message takes to a worker.
_ASKED_AHEAD_RECIPIENTS_MAX = 1_000
# So many keys a process remembers the organizations of.
_LATELY_MAX = 10_000

_log = logs.logger()


class _Member(Waiter):
    """A send in a group. Woken when it is its turn to lead, when it has failed, and when its batch is final."""

    __slots__ = ("accepted_at", "asked_ahead", "came_at", "leads", "outcome", "place_of", "request_id", "send", "waits")

    def __init__(self, send: Send, *, waits: bool, request_id: str) -> None:
        super().__init__(len(send.request.emails))
        self.send: Send | None = send  # Until there is an outcome: it may be thousands of addresses.
        self.request_id = request_id
        self.came_at = time.monotonic()
        self.accepted_at = 0.0
        self.waits = waits
        self.place_of: int | None = None  # The organization that it has taken a place of.
        self.leads = False
        self.asked_ahead: int | None = None  # The organization whose drain it has asked for ahead, when it led.
        self.outcome: Acceptance | Exception | None = None


class Sent(NamedTuple):
    """What became of a send: its acceptance, when that was (`perf_counter`), its rows if they were read by the way."""

    acceptance: Acceptance
    accepted_at: float
    rows: Rows | None


class Sending:
    """The sends of one process."""

    def __init__(self) -> None:
        self._submitting = Submitting()
        self._waiting = Waiting(self._submitting)
        self._gathering = Gathering[_Member]()
        self._places = Places()
        # For whom a key has lately had a batch accepted, by its hash. What it is worth now, PostgreSQL says.
        self._lately: dict[bytes, int] = {}
        # While a leader is with the broker, how it is relieved: the next group shall wait for no broker for long.
        # Only one is at a time: each keeps a connection to PostgreSQL, and a broker that hangs would get all of them.
        self._hand_over: Callable[[], None] | None = None
        self._with_broker = threading.Lock()

    def send(self, send: Send, *, wait_s: float, request_id: str) -> Sent:
        """Accept a send, have it issued, and wait for that, or not at all with `wait_s` 0 or when too many wait.

        `request_id` goes with the message, for those who read the logs.

        Raises:
            PointsError: it is not accepted: a bad key, a reused idempotency key, an organization that may not issue.
            SQLAlchemyError: PostgreSQL is away. Whether the send was accepted may then be unknown.
        """
        member = _Member(send, waits=wait_s > 0, request_id=request_id)
        del send
        deadline = member.came_at + wait_s
        self._gathering.join(member)
        try:
            return self._follow(member, deadline)
        finally:
            self._gathering.leave()
            if isinstance(member.outcome, Acceptance):
                self._waiting.leave(member.outcome.batch_id, member)
            if member.place_of is not None:
                self._places.give_back(member.place_of)

    def _follow(self, member: _Member, deadline: float) -> Sent:
        while True:
            if member.leads:
                self._lead(member)
            if isinstance(member.outcome, Exception):
                raise member.outcome
            if member.outcome is not None and (member.is_final or not member.waits or member.outcome.status != QUEUED):
                return Sent(member.outcome, member.accepted_at, member.rows)
            # Until it is accepted there is no deadline: the leader's waits all have an end.
            in_time = member.sleep(_ACCEPTED_WITHIN_S if member.outcome is None else deadline - time.monotonic())
            if not in_time and member.outcome is None and (hand_over := self._hand_over) is not None:
                hand_over()
            if not in_time and member.outcome is not None and time.monotonic() >= deadline:
                return Sent(member.outcome, member.accepted_at, member.rows)

    def _lead(self, leader: _Member) -> None:
        """Have one group accepted, the leader's own; then the next in the queue leads."""
        group = self._gathering.next_group(leader)
        hand_over = _only_once(self._gathering.hand_over)
        try:
            try:
                sends = [member.send for member in group if member.send is not None]
                outcomes = accept_group(sends)
                self._remember(sends, outcomes)
                self._spare_the_others(outcomes)  # Before one of them leads.
            finally:
                hand_over()
            heard_of = self._tell(group, outcomes)
        finally:
            for member in group:
                if member.outcome is None:  # Something nobody thought of ends the leader; nobody else shall hang.
                    member.outcome = RuntimeError("The group's leader has failed.")
                    member.wake()
        self._ask_for_drains(group, leader.asked_ahead)
        self._waiting.wake(heard_of)  # After that: it reads their rows.
        _note_uses(group)

    def _likely_organization(self, sends: Sequence[Send]) -> int | None:
        """Return the organization of a small group, if that is one, as far as is known without asking."""
        organizations = {self._lately.get(send.key_hash) for send in sends}
        if len(organizations) > 1 or sum(len(send.request.emails) for send in sends) > _ASKED_AHEAD_RECIPIENTS_MAX:
            return None
        return organizations.pop()

    def _remember(self, sends: Sequence[Send], outcomes: Sequence[Acceptance | Exception]) -> None:
        """Remember whose keys these are, as long as there is something to drain when they have sent."""
        for send, outcome in zip(sends, outcomes, strict=True):
            if isinstance(outcome, Acceptance) and not outcome.existed:
                if len(self._lately) >= _LATELY_MAX:
                    self._lately.clear()
                self._lately[send.key_hash] = outcome.organization_id
            else:
                self._lately.pop(send.key_hash, None)

    def _tell(self, group: Sequence[_Member], outcomes: Sequence[Acceptance | Exception]) -> list[int]:
        """Give each its outcome, wake those that wait for no batch, and return of which batches a hint has come before.

        One that waits for a batch is registered before it learns that it is accepted, so that it cannot have left
        already. A hint can come even earlier, because the drain was asked for ahead.
        """
        now = time.perf_counter()
        heard_of = []
        for member, outcome in zip(group, outcomes, strict=True):
            member.accepted_at = now
            batch_id = outcome.batch_id if isinstance(outcome, Acceptance) and outcome.status == QUEUED else None
            if member.waits and isinstance(outcome, Acceptance) and batch_id is not None:
                member.waits = self._take_place(member, outcome.organization_id)
                if member.waits and self._waiting.expect(batch_id, member):
                    heard_of.append(batch_id)
            member.outcome, member.send = outcome, None
            # It may be final before it was known to be accepted.
            if not member.waits or batch_id is None or member.is_final:
                member.wake()
        return heard_of

    def _spare_the_others(self, outcomes: Sequence[Acceptance | Exception]) -> None:
        """Give those who have long waited for their turn the error of a group that found PostgreSQL away.

        One that is frozen lets each group find that out for itself, for seconds, one after the other.
        """
        error = outcomes[0]
        if isinstance(error, Exception) and is_away(error):
            for member in self._gathering.take_who_came_before(time.monotonic() - _OVERDUE_S):
                member.outcome, member.send = error, None
                member.wake()

    def _take_place(self, member: _Member, organization_id: int) -> bool:
        if not self._places.take(organization_id):
            return False
        member.place_of = organization_id
        return True

    def _ask_ahead(self, organization_id: int, group: Sequence[_Member], hand_over: Callable[[], None]) -> None:
        """Ask for the drain of a group that PostgreSQL is just accepting.

        The message takes longer to a worker than the commit does. One that is too early, or in vain, loses nothing: the
        drain is asked for as always once the batches are committed.
        """
        if not self._with_broker.acquire(blocking=False):
            return
        try:
            self._hand_over = hand_over
            leader = group[0]
            job = Job(sum(member.recipients for member in group), leader.request_id)
            if self._submitting.ask_ahead(organization_id, job):
                leader.asked_ahead = organization_id
        finally:
            self._hand_over = None
            self._with_broker.release()

    def _ask_for_drains(self, group: Sequence[_Member], ahead: int | None) -> None:
        asked = _drains(group)
        if ahead is not None:  # Also where nothing came of it.
            asked.setdefault(ahead, {})
        for organization_id, batches in asked.items():
            self._submitting.ask(organization_id, batches, was_ahead=organization_id == ahead)
        if asked:  # Only now: the thread that asks again must find what it is woken for.
            self._waiting.start()


def _only_once(work: Callable[[], None]) -> Callable[[], None]:
    """Return what does a piece of work when it is first called: a leader and those who relieve it call it at once."""
    to_do = threading.Lock()

    def do() -> None:
        if to_do.acquire(blocking=False):
            work()

    return do


def _drains(group: Sequence[_Member]) -> dict[int, dict[int, Job]]:
    """Return the batches whose drain is to be asked for, by their organizations."""
    asked: dict[int, dict[int, Job]] = {}
    for member in group:
        outcome = member.outcome
        # A retry that joins a batch leaves the asking to whoever it belongs to.
        if isinstance(outcome, Acceptance) and not outcome.existed:
            batches = asked.setdefault(outcome.organization_id, {})
            batches[outcome.batch_id] = Job(member.recipients, member.request_id)
    return asked


def _note_uses(group: Sequence[_Member]) -> None:
    """Note that keys were used. What is accepted stays accepted, whatever becomes of the note."""
    accepted = [member.outcome for member in group if isinstance(member.outcome, Acceptance)]
    for api_key_id in {outcome.api_key_id for outcome in accepted if outcome.key_use_is_old}:
        try:
            with transaction() as connection:
                api_keys.note_use(connection, api_key_id)
        except SQLAlchemyError as error:
            _log.warning("key_use_not_noted", api_key_id=api_key_id, **logs.kind_of(error))


sending = Sending()
