"""The send path: accept → ask for a drain → wait → read the committed rows."""

import time
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from app import api_keys, logs
from app.api.sending.accepting import Accepting, accept_bounded_together, accept_together
from app.api.sending.wait_slots import WAITING_SENDS_MAX, WAITING_SENDS_OF_AN_ORGANIZATION_MAX, WaitSlots
from app.api.sending.waiting import READ_ALONE, Rows, Threads, Waiting
from app.batches.accept import Acceptance, Send
from app.batches.batch import QUEUED
from app.errors import InvalidKey
from app.messaging.jobs import Job
from app.messaging.requests import Drains, drains
from app.postgres.database import transaction

_log = logs.logger()


class Sent(NamedTuple):
    """A send's acceptance, when it happened (`perf_counter`), and the rows of its batch if they are already read.

    `is_waited_for`: the call was to wait for it. `had_place`: a wait slot was free.
    """

    acceptance: Acceptance
    accepted_at: float
    rows: Rows | None
    is_waited_for: bool = False
    had_place: bool = True


class SendPath:
    """The sends of one process."""

    def __init__(self, drains: Drains) -> None:
        self._drains = drains
        self._accepting = Accepting(drains.ask, accept_together)
        self._accepting_bounded = Accepting(drains.ask, accept_bounded_together)
        self._waiting = Waiting()
        self._threads = Threads(self._waiting.poll, self._waiting.listen)
        self._slots = WaitSlots(at_most=WAITING_SENDS_MAX, of_one_at_most=WAITING_SENDS_OF_AN_ORGANIZATION_MAX)

    def process(self, send: Send, *, wait_s: float, wait_new_s: float, request_id: str) -> Sent:
        """Accept a send, then wait until its batch is final: at most `wait_s` seconds, and not at all if too many wait.

        A batch that the send itself has made is waited for `wait_new_s`. `request_id` goes with the message into the
        workers' logs.

        Raises:
            PointsError: it is not accepted: a bad key, a reused idempotency key, an organization that may not issue, a
                limit of the key.
            SQLAlchemyError: PostgreSQL is away; whether the send was accepted may be unknown.
        """
        began = time.monotonic()
        recipients = len(send.request.emails)
        with self._accepting.present():
            accepted = self._accept(send, request_id)
            del send  # It may hold thousands of addresses.
            accepted_at = time.perf_counter()
            if accepted.key_use_is_old and accepted.api_key_id is not None:
                _note_use(accepted.api_key_id)
            if accepted.status != QUEUED:
                return Sent(accepted, accepted_at, None)
            self._threads.start()
            deadline = began + (wait_s if accepted.existed else wait_new_s)
            if deadline <= began:
                return Sent(accepted, accepted_at, None)
            with (
                self._slots.slot(accepted.organization_id) as may_wait,
                self._waiting.waiter(accepted.batch_id, recipients) as waiter,
            ):
                if may_wait:
                    waiter.is_final.wait(deadline - time.monotonic())
                return Sent(accepted, accepted_at, waiter.rows, is_waited_for=True, had_place=may_wait)

    def _accept(self, send: Send, request_id: str) -> Acceptance:
        """Accept a send; a key that is not known may be one with bounds, whose sends have a way of their own."""
        try:
            return self._accepting.accept(send, request_id)
        except InvalidKey:
            return self._accepting_bounded.accept(send, request_id)

    def wait_for_reversal(self, organization_id: int, reversal_id: int, *, wait_s: float, request_id: str) -> None:
        """Ask for the drain of an accepted reversal, then wait as for a batch. The caller reads the row afterwards."""
        deadline = time.monotonic() + wait_s
        self._drains.ask(Job(organization_id, None, None, request_id))
        if wait_s > 0:
            self._threads.start()
            with (
                self._slots.slot(organization_id) as may_wait,
                self._waiting.waiter(reversal_id, READ_ALONE) as waiter,
            ):
                if may_wait:
                    waiter.is_final.wait(deadline - time.monotonic())


def _note_use(api_key_id: int) -> None:
    """Note that a key was used. If that fails, the send is still accepted."""
    try:
        with transaction() as connection:
            api_keys.note_use(connection, api_key_id)
    except SQLAlchemyError as error:
        _log.warning("key_use_not_noted", api_key_id=api_key_id, **logs.kind_of(error))


send_path = SendPath(drains)
