"""A worker's upkeep: the process beside its pool that needs no message (`python -m worker.upkeep PARENT`).

What is scheduled, queued, held or not yet folded is in PostgreSQL, so this work goes on while the broker is away. The
worker's parent then waits for the broker, and its pool gets nothing to do. A parent that forks must not hold the
connections and locks of a thread that works. So this is a separate program, which `worker.processes` starts and kills.

What may wait while the broker is away is beat's, in `app.messaging.jobs`: the audit (`POINTS_AUDIT_EVERY_S`), and
forgetting idempotency keys (every 10 minutes) and uploads (every hour).

Nothing is lost when it is killed: what it has not committed is still there for the next one. Every worker has one, and
they share the work: a drain has one owner, and so has each search for crossings, each fold and each return.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from app import logs
from app.batches import awaiting, schedule
from app.batches.queue import organizations_waiting
from app.events import sequencer
from app.ledger import claim, fold, held_list, returns
from app.ledger.due import what_is_due
from app.messaging import worker_counters
from app.messaging.broker import Unread
from app.messaging.jobs import Job, submit
from app.messaging.requests import need_message
from app.messaging.worker_counters import CLAIMED, RETURNED_POINTS, SWEEPS, SWEPT, count
from app.postgres import partitions
from app.postgres.connections import require_writable_server
from app.postgres.database import is_locked_out, single_statement, steps, transaction
from app.request_log import drop_old_requests
from app.scope import Scope
from app.settings import settings
from app.statement import counting
from worker.tasks import drain_and_tell, number

# A batch that waited this long has probably lost its message; before that, it has only been busy.
QUEUED_TOO_LONG_S = 1.5

# How often registrations that crossed an issue are searched for, among the users registered within this many seconds or
# (None) all. Neither a registration nor an issue lasts a quarter of an hour, so the second window misses
# none. After an import of a million users a search takes ten seconds, too long for one every five.
CLAIM_CROSSED_EVERY_S = {5.0: 60.0, 30.0: 900.0, 3_600.0: None}

# Limits of `steps`, and of the drains that one release asks for.
_RELEASE_STEP = 500
_RELEASE_STEPS_MAX = 40
_DRAINS_ASKED_MAX = 200
_CLAIM_STEPS_MAX = 100
_FOLD_STEPS_MAX = 20
_FOLD_CLAIMS_STEPS_MAX = 200
_RETURN_STEP = 1_000
_RETURN_STEPS_MAX = 20
_REJECT_STEP = 200
_REJECT_STEPS_MAX = 50
_DROP_STEP = 1_000
_DROP_STEPS_MAX = 200
_DROP_REQUESTS_STEP = 2_000
_COUNT_AT_ONCE_MAX = 1_000
_COUNT_STEPS_MAX = 1_000
_PARENT_LOOK_EVERY_S = 0.5
_LOOK_EVERY_S = 0.5
# Between the starts of two kinds, so that they do not all need a connection at the same moment, now and ever after.
_APART_S = 0.05

_log = logs.logger()


def sweep() -> None:
    """Drain every organization whose batches have been queued too long: their message was lost, or could not be sent.

    The next sweep takes what a drain leaves when its turn ends.
    """
    with single_statement() as connection:
        waiting = organizations_waiting(connection, longer_than_s=QUEUED_TOO_LONG_S)
    swept: list[int] = []
    for organization_id in waiting:
        swept += drain_and_tell(organization_id)[0]
    if swept:
        _log.info("swept", organization_ids=waiting, batches=len(swept))
    worker_counters.note_sweep({SWEEPS.field(): 1, SWEPT.field(): len(swept)})


def release() -> None:
    """Queue the scheduled batches that are due, and ask for their drains; a sweep takes what nobody drains."""
    released: list[int] = []

    def step(connection: Connection) -> int:
        organizations = schedule.release_due(connection, at_most=_RELEASE_STEP)
        released.extend(organizations)
        return len(organizations)

    steps(step, steps_max=_RELEASE_STEPS_MAX, full=_RELEASE_STEP)
    organizations = list(dict.fromkeys(released))
    if released:
        _log.info("released", organizations=len(organizations), batches=len(released))
    asked = [Job(organization_id) for organization_id in organizations[:_DRAINS_ASKED_MAX]]
    for request in need_message(asked):
        if not submit(request):
            return  # Each further one would wait for the broker as long.


def claim_crossed(*, registered_within_s: float | None) -> None:
    """Claim what is held for users whose registration crossed an issue, of the recently registered or (None) all."""
    step = partial(claim.claim_crossed, registered_within_s=registered_within_s)
    claimed = steps(step, steps_max=_CLAIM_STEPS_MAX)
    if claimed:
        _log.info("claimed_crossed", transactions=claimed)
        count({CLAIMED.field(): claimed})


def fold_credits() -> None:
    """Fold what was issued and claimed since the last run; what is left after these steps waits for the next."""
    steps(fold.fold, steps_max=_FOLD_STEPS_MAX)
    steps(fold.fold_claims, steps_max=_FOLD_CLAIMS_STEPS_MAX)


def number_all() -> None:
    """Number the events that no drain has numbered: of refills, claims and keys, or after a worker was killed."""
    with single_statement() as connection:
        organizations = sequencer.organizations_to_number(connection)
    for organization_id in organizations:
        number(organization_id)


def drop_old_events() -> None:
    """Drop the events past their time; what is left after these steps waits for the next run."""
    step = partial(sequencer.drop_old_events, older_than_days=settings().events_days, at_most=_DROP_STEP)
    dropped = steps(step, steps_max=_DROP_STEPS_MAX)
    if dropped:
        _log.info("events_dropped", events=dropped)


def drop_requests() -> None:
    """Drop the calls past their time; what is left after these steps waits for the next run."""
    step = partial(drop_old_requests, at_most=_DROP_REQUESTS_STEP)
    steps(step, steps_max=_DROP_STEPS_MAX, full=_DROP_REQUESTS_STEP)


def reject_unanswered() -> None:
    """Reject what nobody has approved or rejected in time; what is left after these steps waits for the next run."""
    step = partial(awaiting.reject_unanswered, at_most=_REJECT_STEP)
    rejected = steps(step, steps_max=_REJECT_STEPS_MAX)
    if rejected:
        _log.info("unanswered_rejected", batches=rejected)


def return_unclaimed() -> None:
    """Return points held too long to their organizations; one whose row is locked waits for the next run."""
    locked: set[int] = set()
    for _ in range(_RETURN_STEPS_MAX):
        with transaction() as connection:
            due = returns.due_returns(connection, at_most=_RETURN_STEP, without=locked)
        for step in returns.steps_of(due):
            organization_id = step[0].organization_id
            try:
                with transaction() as connection:
                    returned = returns.return_held(connection, step)
            except DBAPIError as error:
                if not is_locked_out(error):
                    raise
                locked.add(organization_id)
                continue
            if returned is None:
                return
            _tell_of_returns(organization_id, returned)
        if len(due) < _RETURN_STEP:
            return


def _tell_of_returns(organization_id: int, returned: list[returns.Returned]) -> None:
    if not returned:
        return
    _log.info(
        "returned",
        organization_id=organization_id,
        reversal_ids=[one.reversal_id for one in returned],
        transactions=sum(one.transactions for one in returned),
        points=sum(one.points for one in returned),
    )
    for sandbox, mode in ((False, "live"), (True, "sandbox")):
        if points := sum(one.points for one in returned if one.sandbox == sandbox):
            count({RETURNED_POINTS.field(mode): points})


def count_days() -> None:
    """Count the days that are over for the statements, and of today what is much; one that is locked waits."""
    with transaction() as connection:
        due = counting.due(connection, at_most=_COUNT_AT_ONCE_MAX)
    for scope in map(Scope._make, due):
        try:
            step = partial(counting.count_step, scope=scope)
            steps(step, steps_max=_COUNT_STEPS_MAX)
        except DBAPIError as error:
            if not is_locked_out(error):
                raise


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of work, in a thread of its own, so that none holds up another.

    It is done again after `every_s`; once a look has found that it is due, `due_after_s` from its last beginning.
    """

    name: str
    work: Callable[[], None]
    every_s: float
    due_after_s: float = 0.0
    is_due: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        threading.Thread(target=self._repeat, daemon=True).start()

    def _repeat(self) -> None:
        """Repeat the work, by the monotonic clock; no error ends it."""
        while True:
            began = time.monotonic()
            self.is_due.clear()
            try:
                self.work()
            except Exception as error:  # noqa: BLE001  # PostgreSQL may be away, and comes back.
                _log.warning("upkeep_failed", work=self.name, **logs.kind_of(error))
            time.sleep(max(0.0, began + self.due_after_s - time.monotonic()))
            self.is_due.wait(max(0.0, began + self.every_s - time.monotonic()))


def _look(kinds: Sequence[_Kind]) -> None:
    """Look what is due, by one statement: a statement of each kind took a tenth of an idle service's CPU."""
    with single_statement() as connection:
        due = what_is_due(connection, queued_longer_than_s=QUEUED_TOO_LONG_S)
    for kind in kinds:
        if due.get(kind.name):
            kind.is_due.set()


def run(parent: int) -> None:
    """Do all of it until the process `parent` is gone."""
    kinds = [
        # What `what_is_due` tells of. A sweep is a sign of life too, and noted as such.
        _Kind("sweep", sweep, every_s=5.0, due_after_s=1.0),
        _Kind("release", release, every_s=60.0, due_after_s=1.0),
        _Kind("number", number_all, every_s=60.0, due_after_s=0.5),
        _Kind("return", return_unclaimed, every_s=60.0, due_after_s=5.0),
        _Kind("reject_unanswered", reject_unanswered, every_s=60.0, due_after_s=5.0),
        _Kind("fold", fold_credits, every_s=5.0),
        _Kind("drop_events", drop_old_events, every_s=60.0),
        _Kind("drop_requests", drop_requests, every_s=60.0),
        _Kind("count_days", count_days, every_s=60.0),
        _Kind("make_partitions", partitions.make, every_s=10.0),
        _Kind("list_held", held_list.list_full, every_s=10.0),
        _Kind("forget_unread", Unread().forget, every_s=600.0),
        *(
            _Kind("claim", partial(claim_crossed, registered_within_s=registered_within_s), every_s=every_s)
            for every_s, registered_within_s in CLAIM_CROSSED_EVERY_S.items()
        ),
    ]
    for kind in (*kinds, _Kind("look", partial(_look, kinds), every_s=_LOOK_EVERY_S)):
        kind.start()
        time.sleep(_APART_S)
    while os.getppid() == parent:
        time.sleep(_PARENT_LOOK_EVERY_S)
    os._exit(0)  # Work that hangs must not keep this process when its parent is gone.


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends this process in its turn.
    logs.configure("worker", log_format=settings().log_format)
    require_writable_server()
    run(int(sys.argv[1]))
