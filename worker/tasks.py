"""The tasks. Each is thin: it calls one function and logs the outcome."""

import time
from functools import partial

from redis.exceptions import RedisError
from sqlalchemy.exc import OperationalError

from app import logs
from app.audit import run as ledger_audit
from app.batches import read as batches
from app.messaging import worker_counters
from app.messaging.jobs import AUDIT, FORGET_IDEMPOTENCY_KEYS, FORGET_UPLOADS, ISSUE, celery
from app.messaging.worker_counters import AUDITS, count
from app.postgres.database import snapshot, steps
from app.postgres.standby import long_read
from app.reversals import read as reversals
from app.uploads import uploads
from worker.draining import drain_and_stay

# Limits of `steps`.
_FORGET_STEP = 1_000
_FORGET_STEPS_MAX = 100
# A list may have several megabytes.
_FORGET_UPLOADS_STEP = 20

# An audit reads every row. The task gives up after this time, `points audit` does not: with a single worker process a
# send waits for this task, and must still be answered with 201.
_AUDIT_TIME_LIMIT_S = 15.0

_log = logs.logger()


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
        found = long_read(lambda connection: ledger_audit.audit(connection, time_limit_s=left()), within=snapshot)
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
    for forget in (batches.forget_idempotency_keys, reversals.forget_idempotency_keys):
        step = partial(forget, older_than_days=batches.IDEMPOTENCY_KEY_KEPT_DAYS, at_most=_FORGET_STEP)
        steps(step, steps_max=_FORGET_STEPS_MAX, full=_FORGET_STEP)


@celery.task(name=FORGET_UPLOADS, send_events=False)
def forget_uploads() -> None:
    """Drop the lists of the console past their time, in small steps."""
    step = partial(uploads.forget, at_most=_FORGET_UPLOADS_STEP)
    steps(step, steps_max=_FORGET_STEPS_MAX, full=_FORGET_UPLOADS_STEP)
