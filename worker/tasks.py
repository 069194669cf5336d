"""The tasks, each of which calls one function and logs the outcome; and a drain, with the stay that follows it."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from structlog.contextvars import bind_contextvars

from app import kept_answers, logs
from app.audit import run as ledger_audit
from app.batches import batch
from app.batches.batch import IDEMPOTENCY_KEY_KEPT_DAYS
from app.events.sequencer import NUMBERED_MAX, number_events
from app.ledger.drain import drain
from app.messaging import hints, worker_counters
from app.messaging.jobs import AUDIT, FORGET_IDEMPOTENCY_KEYS, FORGET_UPLOADS, ISSUE, Job, celery, submit
from app.messaging.requests import Staying, need_message, note_arrival
from app.messaging.worker_counters import AUDITS, Counts, count
from app.postgres.database import steps, transaction
from app.postgres.standby import long_read
from app.reversals import reversal
from app.uploads import uploads

# After this time a job ends, so that Flower shows it and the broker may give this process another task.
_TURN_S = 2.0

_log = logs.logger()


def drain_and_stay(organization_id: int, request_id: str | None = None) -> list[int]:
    """Drain an organization's queue, then stay for the drains that fronts ask for; return the batches that are final.

    A worker that stays belongs to no organization: whoever asks while a drain goes on is served after its round, and
    the rest of that drain after that.

    Raises:
        DBAPIError, TimeoutError: no connection can be made. What was not committed is still queued.
    """
    request = Job(organization_id, request_id=request_id)
    note_arrival(request)
    turn = _Turn(request)
    try:
        turn.work()
    finally:
        for one in need_message(turn.leave(), are_noted=True):
            submit(one)
    turn.number()
    return turn.final


class _Turn:
    """What one job does: the drain that it is for, and those that fronts ask for meanwhile."""

    def __init__(self, request: Job) -> None:
        self._staying = Staying()
        self._now = request
        self._to_do = deque([request])
        self._to_number: set[int] = set()
        self.final: list[int] = []

    def work(self) -> None:
        """Drain until nobody asks, or the turn is over."""
        ends = time.monotonic() + _TURN_S
        while self._to_do:
            self._drain(self._to_do.popleft())
            left_s = ends - time.monotonic()
            if left_s <= 0:
                return
            if not self._to_do and (asked := self._staying.wait(at_most_s=left_s, when_idle=self.number)):
                self._to_do.append(asked)

    def leave(self) -> list[Job]:
        """Stay no longer; return what is left to do."""
        asked = self._staying.withdraw()
        return [*self._to_do, *([asked] if asked else [])]

    def number(self) -> None:
        """Number what was drained. While many ask, this waits, and the upkeep numbers, half a second later at most."""
        while self._to_number:
            _number_unless_failing(self._to_number.pop())

    def _drain(self, request: Job) -> None:
        self._now = request
        if request.request_id:
            bind_contextvars(request_id=request.request_id)
        final, has_more = _drain_and_hint(request.organization_id, self._staying, self._is_asked)
        if final:
            self.final += final
            self._to_number.add(request.organization_id)
        if has_more:
            self._to_do.append(request)

    def _is_asked(self) -> bool:
        """Tell whether a front has asked for another organization's drain."""
        asked = self._staying.withdraw()
        if asked is None or asked.organization_id == self._now.organization_id:
            return False
        self._to_do.append(asked)
        return True


def drain_and_tell(organization_id: int) -> tuple[list[int], bool]:
    """Drain an organization's queue; return the ids of the batches that are final now, and whether more may wait.

    Raises:
        DBAPIError, TimeoutError: no connection can be made. What was not committed is still queued.
    """
    final, has_more = _drain_and_hint(organization_id)
    if final:
        _number_unless_failing(organization_id)
    return final, has_more


def _drain_and_hint(
    organization_id: int, staying: Staying | None = None, is_asked: Callable[[], bool] = lambda: False
) -> tuple[list[int], bool]:
    final: list[int] = []

    def tell(batch_ids: Sequence[int], counts: Counts) -> None:
        final.extend(batch_ids)
        hints.publish(organization_id, batch_ids, counts, staying)

    return final, drain(organization_id, announce=tell, is_asked=is_asked)


def _number_unless_failing(organization_id: int) -> None:
    """Number the drain's events. An error does not fail the drain: the upkeep numbers the events that are left."""
    try:
        number(organization_id)
    except (DBAPIError, PoolTimeout) as error:
        _log.warning("events_not_numbered", organization_id=organization_id, **logs.kind_of(error))


def number(organization_id: int) -> None:
    """Number the organization's events, unless another process does: it, or the upkeep after it, numbers these too.

    Raises:
        DBAPIError, TimeoutError: PostgreSQL is out of reach.
    """
    while True:
        with transaction() as connection:
            numbered = number_events(connection, organization_id)
        if numbered < NUMBERED_MAX:
            return


# Limits of `steps`.
_FORGET_STEP = 1_000
_FORGET_STEPS_MAX = 100
# A list may have several megabytes.
_FORGET_UPLOADS_STEP = 20

# An audit reads every row. The task gives up after this time, `points audit` does not: with a single worker process a
# send waits for this task, and must still be answered with 201.
_AUDIT_TIME_LIMIT_S = 15.0


@celery.task(name=ISSUE)
def issue(
    organization_id: int, batch_id: int | None = None, recipients: int | None = None, request_id: str | None = None
) -> list[int]:
    """Drain an organization's queue, and then others while fronts ask; the other arguments are for Flower and the logs.

    Flower shows what is returned: the ids of the batches that this job has issued or refused.
    """
    return drain_and_stay(organization_id, request_id)


@celery.task(name=AUDIT, send_events=False)
def audit() -> None:
    """Audit the books, and note the outcome where `/metrics` finds it."""
    began = time.monotonic()

    def left() -> float:  # Also of an audit that is begun anew.
        return began + _AUDIT_TIME_LIMIT_S - time.monotonic()

    try:
        found = long_read(lambda connection: ledger_audit.audit(connection, time_limit_s=left()))
    except OperationalError as error:  # The time limit, or PostgreSQL is away.
        _log.warning("audit_not_finished", seconds=time.monotonic() - began, **logs.kind_of(error))
        count({AUDITS.field("not_finished"): 1})
        return
    seconds = time.monotonic() - began
    try:
        worker_counters.note_audit(seconds=seconds, breaches=len(found.breaches))
    except RedisError as error:
        _log.warning("audit_not_noted", **logs.kind_of(error))
    count({AUDITS.field("not_balanced" if found.breaches else "balanced"): 1})
    (_log.error if found.breaches else _log.info)(
        "audited",
        seconds=seconds,
        breaches=len(found.breaches),
        rules=sorted({breach.rule for breach in found.breaches}),
    )


@celery.task(name=FORGET_IDEMPOTENCY_KEYS, send_events=False)
def forget_idempotency_keys() -> None:
    """Forget keys past their time, in steps so small that none locks many rows or lasts long."""
    days = IDEMPOTENCY_KEY_KEPT_DAYS
    for step in (
        partial(batch.forget_idempotency_keys, older_than_days=days, at_most=_FORGET_STEP),
        partial(reversal.forget_idempotency_keys, older_than_days=days, at_most=_FORGET_STEP),
        partial(kept_answers.forget, at_most=_FORGET_STEP),
    ):
        steps(step, steps_max=_FORGET_STEPS_MAX, full=_FORGET_STEP)


@celery.task(name=FORGET_UPLOADS, send_events=False)
def forget_uploads() -> None:
    """Drop the lists of the console past their time, in small steps."""
    step = partial(uploads.forget, at_most=_FORGET_UPLOADS_STEP)
    steps(step, steps_max=_FORGET_STEPS_MAX, full=_FORGET_UPLOADS_STEP)
