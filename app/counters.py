"""Counters of the workers: what is counted, and one hash in Redis to which the workers of all machines add it."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from redis.client import Pipeline
from redis.exceptions import RedisError

from app import logs, process_redis

KEY = "points:work"
SUM = "sum"

# What to add, by the field of the hash: a family's name, the values of its labels, and for a histogram the upper limit
# of a bucket, or `sum`.
Counts = Mapping[str, float]

_log = logs.logger()


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """A counter, or with `buckets` (their upper limits) a histogram, under the name that Prometheus shows.

    `known` are values of the labels that are shown as 0 before the first is counted: a rise from nothing
    is no rise to an alert.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()

    def field(self, *values: str) -> str:
        """Return the field of a counter; `values` are those of its labels, in their order, and hold no bar."""
        return "|".join((self.name, *values))

    def observed(self, value: float) -> dict[str, float]:
        """Return what a value adds to a histogram."""
        place = bisect_left(self.buckets, value)
        bucket = f"{self.buckets[place]:g}" if place < len(self.buckets) else "+Inf"
        return {self.field(bucket): 1, self.field(SUM): value}


DRAINS = Family(
    name="points_drains",
    help="Rounds of drains: done, or failed as a whole and tried again batch by batch.",
    labels=("outcome",),
    known=(("done",), ("failed",)),
)
DRAIN_BATCHES = Family(
    name="points_drain_batches", help="Batches that one drain took.", buckets=(1, 2, 5, 10, 20, 50, 100, 200)
)
DRAIN_RECIPIENTS = Family(
    name="points_drain_recipients",
    help="Recipients of the batches that one drain took.",
    buckets=(1, 10, 100, 1_000, 2_000, 5_000, 10_000, 20_000),
)
ISSUE_SECONDS = Family(
    name="points_issue_seconds",
    help="What the transaction of one drain took, its commit included.",
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

FAMILIES = (
    *(DRAINS, DRAIN_BATCHES, DRAIN_RECIPIENTS, ISSUE_SECONDS, FINAL_BATCHES, RECIPIENTS, POINTS),
    *(POSTPONED_BATCHES, SWEEPS, SWEPT, CLAIMED, AUDITS),
)


def add(counts: Counts, pipeline: Pipeline) -> None:
    """Put counts among the commands of a pipeline, which the caller executes."""
    for field, amount in counts.items():
        pipeline.hincrbyfloat(KEY, field, amount)


def count(counts: Counts) -> None:
    """Add counts at once. Never fails: with Redis away they are lost, and the books do not depend on them."""
    try:
        with process_redis.redis().pipeline(transaction=False) as pipeline:
            add(counts, pipeline)
            pipeline.execute()
    except RedisError as error:
        _log.warning("counts_lost", **logs.kind_of(error))
