"""The log line and the counters of each round of a drain, once it has committed."""

from collections import defaultdict
from collections.abc import Sequence

from app import logs
from app.ledger.issue import Outcome
from app.ledger.reverse import Taken
from app.messaging.worker_counters import (
    DRAIN_BATCHES,
    DRAIN_RECIPIENTS,
    DRAINS,
    FINAL_BATCHES,
    ISSUE_SECONDS,
    POINTS,
    RECIPIENTS,
    REVERSALS,
    REVERSED_POINTS,
    Counts,
)

_log = logs.logger()


def counts_of(outcomes: Sequence[Outcome] | Sequence[Taken], *, seconds: float) -> Counts:
    """Return what a round adds to the counters; a round that found nothing adds nothing."""
    issued = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    counts = _of_reversals([outcome for outcome in outcomes if isinstance(outcome, Taken)])
    return counts | (_of_batches(issued, seconds=seconds) if issued else {})


def _of_reversals(outcomes: Sequence[Taken]) -> dict[str, float]:
    counts: defaultdict[str, float] = defaultdict(float)
    for taken in outcomes:
        mode = "sandbox" if taken.sandbox else "live"
        counts[REVERSALS.field(mode, "refused" if taken.amount is None else "done")] += 1
        counts[REVERSED_POINTS.field(mode)] += taken.amount or 0
    return {field: amount for field, amount in counts.items() if amount}


def _of_batches(outcomes: Sequence[Outcome], *, seconds: float) -> dict[str, float]:
    counts: defaultdict[str, float] = defaultdict(float, {DRAINS.field("done"): 1})
    counts |= DRAIN_BATCHES.observed(len(outcomes))
    counts |= DRAIN_RECIPIENTS.observed(_recipients(outcomes))
    counts |= ISSUE_SECONDS.observed(seconds)
    for outcome in outcomes:
        mode = "sandbox" if outcome.sandbox else "live"
        counts[FINAL_BATCHES.field(mode, "refused" if outcome.debited_count is None else "issued")] += 1
        if outcome.debited_count is not None:
            counts[RECIPIENTS.field(mode, "true")] += outcome.debited_count
            counts[RECIPIENTS.field(mode, "false")] += outcome.recipients - outcome.debited_count
            counts[POINTS.field(mode)] += outcome.debited_amount or 0
    return {field: amount for field, amount in counts.items() if amount}


def report(organization_id: int, outcomes: Sequence[Outcome] | Sequence[Taken], *, seconds: float) -> None:
    """Log one line with every batch of a round, or with its reversal."""
    for outcome in outcomes:
        if isinstance(outcome, Taken):
            _log.info(
                "reversed",
                organization_id=organization_id,
                reversal_id=outcome.id,
                refused=outcome.amount is None,
                transactions=outcome.transactions,
                points=outcome.amount or 0,
                seconds=round(seconds, 6),
            )
    issued = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    if issued:
        _report_batches(organization_id, issued, seconds=seconds)


def _report_batches(organization_id: int, outcomes: Sequence[Outcome], *, seconds: float) -> None:
    _log.info(
        "drained",
        organization_id=organization_id,
        batch_ids=[outcome.id for outcome in outcomes],
        refused=sum(outcome.debited_count is None for outcome in outcomes),
        recipients=_recipients(outcomes),
        points=sum(outcome.debited_amount or 0 for outcome in outcomes),
        seconds=round(seconds, 6),
    )


def _recipients(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.recipients for outcome in outcomes)
