"""What is told and counted of every round of a drain, once it has committed."""

from collections import defaultdict
from collections.abc import Sequence

from app import logs
from app.ledger.issue import Outcome
from app.tally import (
    DRAIN_BATCHES,
    DRAIN_RECIPIENTS,
    DRAINS,
    FINAL_BATCHES,
    ISSUE_SECONDS,
    POINTS,
    RECIPIENTS,
    Family,
    tally,
)

_log = logs.logger()


def report(organization_id: int, outcomes: Sequence[Outcome], *, seconds: float) -> None:
    """Log one line that names every batch of a round, and add the round to what this process counts."""
    recipients = sum(outcome.recipients for outcome in outcomes)
    tally.count(DRAINS, 1, "done")
    tally.observe(DRAIN_BATCHES, len(outcomes))
    tally.observe(DRAIN_RECIPIENTS, recipients)
    tally.observe(ISSUE_SECONDS, seconds)
    points = _count_by_mode(outcomes)
    _log.info(
        "drained",
        organization_id=organization_id,
        batch_ids=[outcome.batch_id for outcome in outcomes],
        refused=sum(outcome.debited_count is None for outcome in outcomes),
        recipients=recipients,
        points=points,
        seconds=round(seconds, 6),
    )


def _count_by_mode(outcomes: Sequence[Outcome]) -> int:
    """Count batches, recipients and points by mode; return the points of both."""
    sums: defaultdict[tuple[Family, *tuple[str, ...]], int] = defaultdict(int)
    for outcome in outcomes:
        mode = "sandbox" if outcome.sandbox else "live"
        sums[FINAL_BATCHES, mode, "refused" if outcome.debited_count is None else "issued"] += 1
        if outcome.debited_count is not None:
            sums[RECIPIENTS, mode, "true"] += outcome.debited_count
            sums[RECIPIENTS, mode, "false"] += outcome.recipients - outcome.debited_count
            sums[POINTS, mode] += outcome.debited_count * outcome.amount
    for (family, *labels), amount in sums.items():
        if amount:
            tally.count(family, amount, *labels)
    return sums[POINTS, "live"] + sums[POINTS, "sandbox"]
