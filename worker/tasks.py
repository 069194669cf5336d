"""The tasks. Each is thin: it calls one function of the ledger and says what came of it."""

import logging
from typing import Any

from celery.signals import setup_logging, worker_process_init

from app import batches, hints
from app.database import forget_connections_of_the_parent, transaction
from app.ledger import claim, fold
from app.ledger.drain import drain
from app.queue import CLAIM_CROSSED, FOLD, FORGET_IDEMPOTENCY_KEYS, ISSUE, QUEUED_TOO_LONG_S, SWEEP, celery, submit

# What is left after these steps waits for the next run, ten minutes later.
_FORGET_STEP = 1_000
_FORGET_STEPS_MAX = 100
_FOLD_STEPS_MAX = 20

_log = logging.getLogger(__name__)


@celery.task(name=ISSUE)
def issue(organization_id: int, batch_id: int | None = None, recipients: int | None = None) -> None:
    """Drain an organization's queue. `batch_id` and `recipients` are there for those who watch the jobs."""
    if drain(organization_id, announce=hints.publish):
        submit(organization_id)


@celery.task(name=SWEEP)
def sweep() -> None:
    """Ask again for every organization whose batches have been queued too long: their message was lost."""
    with transaction() as connection:
        waiting = batches.organizations_waiting(connection, longer_than_s=QUEUED_TOO_LONG_S)
    for organization_id in waiting:
        submit(organization_id)
    hints.note_sweep()


@celery.task(name=CLAIM_CROSSED)
def claim_crossed(*, everybody: bool = False) -> None:
    """Claim what is held for users whose registration crossed an issue: new users, or everybody."""
    within_s = None if everybody else claim.CROSSING_WINDOW_S
    with transaction() as connection:
        user_ids = claim.users_with_held(connection, registered_within_s=within_s)
        if user_ids:
            _log.info("Claimed %d crossed transactions", claim.claim(connection, user_ids))


@celery.task(name=FOLD)
def fold_credits() -> None:
    """Fold what was issued since the last run; what is left after these steps waits for the next."""
    for _ in range(_FOLD_STEPS_MAX):
        with transaction() as connection:
            if fold.fold(connection) == 0:
                return


@celery.task(name=FORGET_IDEMPOTENCY_KEYS)
def forget_idempotency_keys() -> None:
    """Forget keys past their time, in steps so small that none holds many rows or lasts long."""
    for _ in range(_FORGET_STEPS_MAX):
        with transaction() as connection:
            forgotten = batches.forget_idempotency_keys(
                connection, older_than_days=batches.IDEMPOTENCY_KEY_KEPT_DAYS, at_most=_FORGET_STEP
            )
        if forgotten < _FORGET_STEP:
            return


@worker_process_init.connect
def _after_fork(**_: Any) -> None:
    forget_connections_of_the_parent()


@setup_logging.connect
def _log_plainly(**_: Any) -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    # A line for each task sent, received and done says nothing; the ledger says what was issued.
    for name in ("celery.beat", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
