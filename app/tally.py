"""What workers count: kept in the memory of a process until `app/metrics/shipping.py` adds it to Redis.

Counting is a dictionary and a lock, about a microsecond, so that a drain may count without a thought.
"""

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass


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
RESUBMITTED = Family(
    name="points_resubmitted_messages", help="Drains that a sweep asked for, because batches were queued too long."
)
CLAIMED = Family(name="points_claimed_crossed", help="Held transactions claimed by the task, not by a registration.")
AUDITS = Family(
    name="points_audits",
    help="Audits by the task: balanced, not_balanced, or not finished in its time.",
    labels=("outcome",),
    known=(("balanced",), ("not_balanced",), ("not_finished",)),
)

FAMILIES = (
    *(DRAINS, DRAIN_BATCHES, DRAIN_RECIPIENTS, ISSUE_SECONDS, FINAL_BATCHES, RECIPIENTS, POINTS),
    *(POSTPONED_BATCHES, SWEEPS, RESUBMITTED, CLAIMED, AUDITS),
)

# A field of the Redis hash: the family's name, the values of its labels, and for a histogram the upper
# limit of a bucket, or `sum`. No value of a label holds a bar.
SEPARATOR = "|"
SUM = "sum"


class Tally:
    """Counts by field, given away whole by `take` and taken back by `give_back` when nobody wanted them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: defaultdict[str, float] = defaultdict(float)

    def count(self, family: Family, amount: float = 1, *labels: str) -> None:
        """Add to a counter; `labels` are the values, in the family's order."""
        field = SEPARATOR.join((family.name, *labels))
        with self._lock:
            self._counts[field] += amount

    def observe(self, family: Family, value: float) -> None:
        """Put a value into the buckets of a histogram."""
        place = bisect_left(family.buckets, value)
        bucket = f"{family.buckets[place]:g}" if place < len(family.buckets) else "+Inf"
        with self._lock:
            self._counts[f"{family.name}{SEPARATOR}{bucket}"] += 1
            self._counts[f"{family.name}{SEPARATOR}{SUM}"] += value

    def take(self) -> Mapping[str, float]:
        """Return what was counted since the last time, and start anew."""
        with self._lock:
            counts, self._counts = self._counts, defaultdict(float)
        return counts

    def give_back(self, counts: Mapping[str, float]) -> None:
        with self._lock:
            for field, amount in counts.items():
                self._counts[field] += amount

    def forget_lock_of_the_parent(self) -> None:
        """Call in a forked child: the parent's lock may have been held, and its counts are the parent's to ship."""
        self._lock = threading.Lock()
        self._counts = defaultdict(float)


tally = Tally()
