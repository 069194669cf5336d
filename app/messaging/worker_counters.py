"""Counters of the workers, kept in one Redis hash to which the workers of all machines add."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from redis.client import Pipeline
from redis.exceptions import RedisError

from app import logs
from app.messaging import process_redis

KEY = "points:work"
SUM = "sum"

# The amount to add to each field of the hash. A field is a family's name, then the values of its labels, or for a
# histogram the upper limit of a bucket or `sum`, joined by bars.
Counts = Mapping[str, float]

_log = logs.logger()


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """A counter, or with `buckets` (upper limits) a histogram; `name` is the one that Prometheus shows.

    `known` are label values that are shown as 0 before the first count, because an alert does not see a rise from
    absent to 1.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()

    def field(self, *values: str) -> str:
        """Return the field of a counter; `values` are the label values in order, without bars."""
        return "|".join((self.name, *values))

    def observed(self, value: float) -> dict[str, float]:
        """Return the counts that one value adds to a histogram."""
        index = bisect_left(self.buckets, value)
        bucket = f"{self.buckets[index]:g}" if index < len(self.buckets) else "+Inf"
        return {self.field(bucket): 1, self.field(SUM): value}


DRAINS = Family(
    name="points_drains",
    help="Rounds of drains: done, or failed as a whole and tried again batch by batch.",
    labels=("outcome",),
    known=(("done",), ("failed",)),
)
DRAIN_BATCHES = Family(
    name="points_drain_batches", help="Batches of one drain.", buckets=(1, 2, 5, 10, 20, 50, 100, 200)
)
DRAIN_RECIPIENTS = Family(
    name="points_drain_recipients",
    help="Recipients of one drain.",
    buckets=(1, 10, 100, 1_000, 2_000, 5_000, 10_000, 20_000),
)
ISSUE_SECONDS = Family(
    name="points_issue_seconds",
    help="Duration of one drain's transaction, commit included.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
FINAL_BATCHES = Family(
    name="points_final_batches",
    help="Batches that became final, by mode and by status (issued or refused).",
    labels=("mode", "status"),
)
RECIPIENTS = Family(
    name="points_recipients",
    help="Recipients of issued batches, by mode and by whether the balance paid for them.",
    labels=("mode", "debited"),
)
POINTS = Family(name="points_issued_points", help="Points debited from organizations, by mode.", labels=("mode",))
REVERSALS = Family(
    name="points_reversals",
    help="Reversals that became final, by mode and by status (done or refused).",
    labels=("mode", "status"),
)
REVERSED_POINTS = Family(
    name="points_reversed_points", help="Points taken back and given to organizations, by mode.", labels=("mode",)
)
RETURNED_POINTS = Family(
    name="points_returned_points",
    help="Points held too long and given back to organizations, by mode.",
    labels=("mode",),
)
POSTPONED_BATCHES = Family(
    name="points_postponed_batches", help="Failures of a batch on its own, after each of which it is put aside."
)
SWEEPS = Family(name="points_sweeps", help="Sweeps that ran.")
SWEPT = Family(name="points_swept_batches", help="Batches that a sweep issued, because they were queued too long.")
CLAIMED = Family(name="points_claimed_crossed", help="Held transactions claimed by the task, not by a registration.")
AUDITS = Family(
    name="points_audits",
    help="Audits by the task: balanced, not_balanced, or not finished in its time.",
    labels=("outcome",),
    known=(("balanced",), ("not_balanced",), ("not_finished",)),
)
WEBHOOK_ATTEMPTS = Family(
    name="points_webhook_attempts",
    help="Attempts to deliver an event to a webhook: delivered, or why not.",
    labels=("outcome",),
    known=tuple((outcome,) for outcome in ("delivered", "refused", "timeout", "not_connected")),
)

FAMILIES = (
    *(DRAINS, DRAIN_BATCHES, DRAIN_RECIPIENTS, ISSUE_SECONDS, FINAL_BATCHES, RECIPIENTS, POINTS),
    *(REVERSALS, REVERSED_POINTS, RETURNED_POINTS, POSTPONED_BATCHES, SWEEPS, SWEPT, CLAIMED, AUDITS),
    WEBHOOK_ATTEMPTS,
)


def add(counts: Counts, pipeline: Pipeline) -> None:
    """Add counts to a pipeline that the caller executes."""
    for field, amount in counts.items():
        pipeline.hincrbyfloat(KEY, field, amount)


def count(counts: Counts) -> None:
    """Add counts at once. It never fails: while Redis is away counts are lost, but the books do not depend on them."""
    try:
        with process_redis.unless_away() as redis, redis.pipeline(transaction=False) as pipeline:
            add(counts, pipeline)
            pipeline.execute()
    except process_redis.LeftAlone:
        return
    except RedisError as error:
        _log.warning("counts_lost", **logs.kind_of(error))
