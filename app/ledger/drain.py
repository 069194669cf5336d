"""Draining: an organization's whole queue, one transaction a round, by one worker at a time; it tells of each round."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from app import logs
from app.batches.queue import due_batches, due_reversals, has_due, postpone
from app.ledger.issue import BATCHES_MAX, Outcome, Taken, issue, reverse
from app.messaging import worker_counters as counters
from app.messaging.worker_counters import Counts, count
from app.postgres import partitions
from app.postgres.database import (
    is_locked_out,
    is_lost,
    is_unreachable,
    is_without_partition,
    single_statement,
    transaction,
)

_log = logs.logger()


# After this many rounds, or this long, a busy organization makes room for others: its worker asks for a new task.
ROUNDS_MAX = 10
_TURN_S = 0.5
# How long to skip an organization whose row somebody else has locked; otherwise each message for it blocks a worker
# process. The sweep asks again.
_LEFT_ALONE_S = 2.0
# A batch that is tried alone and loses this many connections in a row is the reason why PostgreSQL ends them. In an
# outage it loses only the first: no new connection can be made. Nothing is kept between drains, so any worker may come
# next.
_LOSSES_MAX = 3

Outcomes = Sequence[Outcome] | Sequence[Taken]
# Called with the ids of the batches or the reversal that a round has committed, and with what it adds to the counters.
Announce = Callable[[Sequence[int], Counts], None]


class _Take(Protocol):
    """`issue` or `reverse`: takes the batch or reversal of a place in the queue, or all that are due."""

    def __call__(self, connection: Connection, organization_id: int, *, only: int | None) -> Outcomes | None: ...


# Until when (`time.monotonic`) this process skips an organization.
_left_alone_until: dict[int, float] = {}


def drain(organization_id: int, *, announce: Announce, is_asked: Callable[[], bool] = lambda: False) -> bool:
    """Issue an organization's queued batches, and do its reversals, until none is left; tell whether more may wait.

    They are taken in the order of their acceptance: a round issues the batches that come before the oldest reversal, or
    does that reversal.

    Each round is announced first. Then, after the commit and while *not* owning the drain, it looks for more. A worker
    that found the drain owned has left, and a front that found it requested has sent no message: both rely on this look
    for what they had committed before. A look while owning it would strand such a batch until the sweep.

    `is_asked` tells, before each further round, whether the worker is needed elsewhere; then this turn is over.

    Raises:
        DBAPIError, TimeoutError: no connection can be made. What was not committed is still queued.
    """
    if _left_alone_until.get(organization_id, 0.0) > time.monotonic():
        return False
    turn_ends = time.perf_counter() + _TURN_S
    for rounds in range(ROUNDS_MAX):
        began = time.perf_counter()
        try:
            if rounds and not _has_more(organization_id):
                return False
            if rounds and (began > turn_ends or is_asked()):
                return True
            outcomes = _round(organization_id)
        except Exception as error:  # No error may hold up the other batches.
            if is_unreachable(error):
                raise
            if is_locked_out(error):  # Nothing is wrong with the batches.
                _log.warning("organization_locked", organization_id=organization_id, **logs.kind_of(error))
                _leave_alone(organization_id)
                return False
            if is_lost(error):
                _log.warning("connection_lost", organization_id=organization_id, **logs.kind_of(error))
            else:
                _log.error("drain_failed", organization_id=organization_id, **logs.kind_of(error))
                count({counters.DRAINS.field("failed"): 1})
            _one_at_a_time(organization_id, announce)
            continue
        if outcomes is None:  # Another worker owns the drain.
            return False
        _tell(outcomes, announce, organization_id, began=began)
    return True


def _round(organization_id: int) -> Outcomes | None:
    """Issue the batches that come before the oldest reversal; when there are none, do that reversal.

    If the upkeep has not made a batch's partition in time, it is made here.
    """
    try:
        return _issue_or_reverse(organization_id)
    except DBAPIError as error:
        if not is_without_partition(error):
            raise
    partitions.make()
    return _issue_or_reverse(organization_id)


def _issue_or_reverse(organization_id: int) -> Outcomes | None:
    with transaction() as connection:
        issued = issue(connection, organization_id)
        return issued or (None if issued is None else reverse(connection, organization_id))


def _has_more(organization_id: int) -> bool:
    with single_statement() as connection:
        return has_due(connection, organization_id)


def _leave_alone(organization_id: int) -> None:
    now = time.monotonic()
    for other in [other for other, until in _left_alone_until.items() if until <= now]:
        del _left_alone_until[other]
    _left_alone_until[organization_id] = now + _LEFT_ALONE_S


def _one_at_a_time(organization_id: int, announce: Announce) -> None:
    """Take each due batch and reversal in a separate transaction, so that a failure harms no other."""
    with single_statement() as connection:
        batches = {batch.place: batch.id for batch in due_batches(connection, organization_id, at_most=BATCHES_MAX)}
        reversal_ids = due_reversals(connection, organization_id, at_most=BATCHES_MAX)
    for place in sorted([*batches, *reversal_ids]):
        is_reversal = place not in batches
        began = time.perf_counter()
        try:
            outcomes = _alone(reverse if is_reversal else issue, organization_id, place)
        except Exception as error:  # As above.
            if is_unreachable(error):
                raise
            if is_locked_out(error):
                return
            _put_aside(organization_id, batches.get(place, place), error, is_reversal=is_reversal)
            continue
        if outcomes is None:
            return
        _tell(outcomes, announce, organization_id, began=began)


def _put_aside(organization_id: int, due_id: int, error: Exception, *, is_reversal: bool) -> None:
    kind = logs.kind_of(error)
    if is_reversal:
        _log.error("reversal_postponed", organization_id=organization_id, reversal_id=due_id, **kind)
    else:
        _log.error("batch_postponed", organization_id=organization_id, batch_id=due_id, **kind)
    with transaction() as connection:
        table = "reversals" if is_reversal else "batches"
        postpone(connection, due_id, organization_id=organization_id, table=table)
    count({counters.POSTPONED_BATCHES.field(): 1})


def _alone(take: _Take, organization_id: int, place: int) -> Outcomes | None:
    """Take what has this place. If the connection is lost, try again on another: an outage may be the cause."""
    for _ in range(_LOSSES_MAX - 1):
        try:
            with transaction() as connection:
                return take(connection, organization_id, only=place)
        except DBAPIError as error:
            if not is_lost(error):
                raise
    with transaction() as connection:
        return take(connection, organization_id, only=place)


def _tell(outcomes: Outcomes, announce: Announce, organization_id: int, *, began: float) -> None:
    """Tell the fronts, then the log, what a transaction that began at `began` (`perf_counter`) has committed."""
    seconds = time.perf_counter() - began
    announce([outcome.id for outcome in outcomes], counts_of(outcomes, seconds=seconds))
    of_round = {"organization_id": organization_id, "seconds": round(seconds, 6)}
    for outcome in outcomes:
        if isinstance(outcome, Taken):
            result = {"reversal_id": outcome.id, "refused": outcome.amount is None, "points": outcome.amount or 0}
            _log.info("reversed", transactions=outcome.transactions, **result, **of_round)
    issued = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    if issued:
        _log.info(
            "drained",
            batch_ids=[outcome.id for outcome in issued],
            refused=sum(outcome.debited_count is None for outcome in issued),
            recipients=sum(outcome.recipients for outcome in issued),
            points=sum(outcome.debited_amount or 0 for outcome in issued),
            **of_round,
        )


def counts_of(outcomes: Outcomes, *, seconds: float) -> Counts:
    """Return what a round adds to the counters; a round without work adds nothing."""
    counts: defaultdict[str, float] = defaultdict(float)
    issued = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    if issued:
        counts[counters.DRAINS.field("done")] = 1
        counts |= counters.DRAIN_BATCHES.observed(len(issued))
        counts |= counters.DRAIN_RECIPIENTS.observed(sum(outcome.recipients for outcome in issued))
        counts |= counters.ISSUE_SECONDS.observed(seconds)
    for outcome in outcomes:
        mode = "sandbox" if outcome.sandbox else "live"
        if isinstance(outcome, Taken):
            counts[counters.REVERSALS.field(mode, "refused" if outcome.amount is None else "done")] += 1
            counts[counters.REVERSED_POINTS.field(mode)] += outcome.amount or 0
            continue
        counts[counters.FINAL_BATCHES.field(mode, "refused" if outcome.debited_count is None else "issued")] += 1
        if outcome.debited_count is not None:
            counts[counters.RECIPIENTS.field(mode, "true")] += outcome.debited_count
            counts[counters.RECIPIENTS.field(mode, "false")] += outcome.recipients - outcome.debited_count
            counts[counters.POINTS.field(mode)] += outcome.debited_amount or 0
    return {field: amount for field, amount in counts.items() if amount}
