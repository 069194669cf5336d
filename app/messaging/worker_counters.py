"""What the workers of all machines note in Redis: counters in a hash, and when a sweep, beat and an audit last ran."""

import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from redis import Redis
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


@dataclass(frozen=True, slots=True)
class Family:
    """A counter, or with `buckets` (upper limits) a histogram; Prometheus shows it by its `name`.

    `known` are label values that are 0 before the first count, because an alert does not see a rise from
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
        """Return the counts that a value adds to a histogram."""
        index = bisect_left(self.buckets, value)
        bucket = f"{self.buckets[index]:g}" if index < len(self.buckets) else "+Inf"
        return {self.field(bucket): 1, self.field(SUM): value}


DRAINS = Family(
    "points_drains",
    "Rounds of drains: done, or failed as a whole and tried again batch by batch.",
    ("outcome",),
    known=(("done",), ("failed",)),
)
DRAIN_BATCHES = Family("points_drain_batches", "Batches of one drain.", buckets=(1, 2, 5, 10, 20, 50, 100, 200))
DRAIN_RECIPIENTS = Family(
    "points_drain_recipients", "Recipients of one drain.", buckets=(1, 10, 100, 1_000, 2_000, 5_000, 10_000, 20_000)
)
ISSUE_SECONDS = Family(
    "points_issue_seconds",
    "Duration of one drain's transaction, commit included.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
FINAL_BATCHES = Family(
    "points_final_batches", "Batches that became final, by mode and by status (issued or refused).", ("mode", "status")
)
RECIPIENTS = Family(
    "points_recipients",
    "Recipients of issued batches, by mode and by whether the balance paid for them.",
    ("mode", "debited"),
)
POINTS = Family("points_issued_points", "Points debited from organizations, by mode.", ("mode",))
REVERSALS = Family(
    "points_reversals", "Reversals that became final, by mode and by status (done or refused).", ("mode", "status")
)
REVERSED_POINTS = Family("points_reversed_points", "Points taken back and given to organizations, by mode.", ("mode",))
RETURNED_POINTS = Family(
    "points_returned_points", "Points held too long and given back to organizations, by mode.", ("mode",)
)
POSTPONED_BATCHES = Family(
    "points_postponed_batches", "Failures of a batch on its own, after each of which it is put aside."
)
SWEEPS = Family("points_sweeps", "Sweeps that ran.")
SWEPT = Family("points_swept_batches", "Batches that a sweep issued, because they were queued too long.")
CLAIMED = Family("points_claimed_crossed", "Held transactions claimed by the task, not by a registration.")
AUDITS = Family(
    "points_audits",
    "Audits by the task: balanced, not_balanced, or not finished in its time.",
    ("outcome",),
    known=(("balanced",), ("not_balanced",), ("not_finished",)),
)
WEBHOOK_ATTEMPTS = Family(
    "points_webhook_attempts",
    "Attempts to deliver an event to a webhook: delivered, or why not.",
    ("outcome",),
    known=tuple((outcome,) for outcome in ("delivered", "refused", "timeout", "not_connected")),
)
MAILS = Family(
    "points_mails",
    "Mails to members: sent (or printed, without a server), failed, or given up after a day of failures.",
    ("outcome",),
    known=(("sent",), ("failed",), ("given_up",)),
)

FAMILIES = (
    *(DRAINS, DRAIN_BATCHES, DRAIN_RECIPIENTS, ISSUE_SECONDS, FINAL_BATCHES, RECIPIENTS, POINTS),
    *(REVERSALS, REVERSED_POINTS, RETURNED_POINTS, POSTPONED_BATCHES, SWEEPS, SWEPT, CLAIMED, AUDITS),
    *(WEBHOOK_ATTEMPTS, MAILS),
)


def add(counts: Counts, pipeline: Pipeline) -> None:
    """Add counts to a pipeline that the caller executes."""
    for field, amount in counts.items():
        pipeline.hincrbyfloat(KEY, field, amount)


def count(counts: Counts, notes: Mapping[str, str] | None = None) -> None:
    """Add counts at once, and set some keys. It never fails: without Redis they are lost, and no book needs them."""
    try:
        with process_redis.unless_away() as redis, redis.pipeline(transaction=False) as pipeline:
            for key, note in (notes or {}).items():
                pipeline.set(key, note)
            add(counts, pipeline)
            pipeline.execute()
    except process_redis.LeftAlone:
        return
    except RedisError as error:
        _log.warning("counts_lost", **logs.kind_of(error))


_SWEPT_AT, _BEAT_AT = "points:swept_at", "points:beat_at"
_AUDIT = "points:audit"

# Sweeps run every 5 s at least; a sweep of a long queue takes its time.
_OLD_S = 30.0
_COMES_WITHIN_S = 15.0
_LOOK_EVERY_S = 0.2


def note_sweep(counts: Counts) -> None:
    """Note that a sweep ran just now, and what it counted."""
    count(counts, {_SWEPT_AT: f"{time.time():.3f}"})


def note_beat() -> None:
    """Note that beat scheduled just now."""
    count({}, {_BEAT_AT: f"{time.time():.3f}"})


def swept_at(client: Redis) -> float | None:
    """Return when a sweep last ran, in seconds since 1970 by its machine's clock; None if no sweep is known."""
    return _noted(client, _SWEPT_AT)


def beat_at(client: Redis) -> float | None:
    """Return when beat last scheduled, in the same way."""
    return _noted(client, _BEAT_AT)


def _noted(client: Redis, key: str) -> float | None:
    noted = client.get(key)
    return None if noted is None else float(str(noted))


def swept_s_ago(client: Redis) -> float | None:
    """Return how many seconds ago a sweep ran, by the clocks of the machines; None if no sweep is known."""
    at = swept_at(client)
    return None if at is None else max(0.0, time.time() - at)


def is_swept(client: Redis) -> bool:
    """Tell whether sweeps run: the last is young, or another comes within the time that a worker takes to start.

    An old sweep may be from before the service was started again, or by a clock that is behind. None known counts as
    young: Redis may have been emptied just now.
    """
    last = swept_at(client)
    if last is None or time.time() - last < _OLD_S:
        return True
    deadline = time.monotonic() + _COMES_WITHIN_S
    while swept_at(client) == last:
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class LastAudit:
    """The last audit: when it ended (seconds since 1970), how long it took, and how many breaches it found."""

    ended_at: float
    seconds: float
    breaches: int


def note_audit(*, seconds: float, breaches: int) -> None:
    """Note that an audit ended just now, and what it found.

    Raises:
        RedisError: Redis is out of reach.
    """
    ended_at = f"{time.time():.3f}"
    process_redis.redis().hset(_AUDIT, mapping={"ended_at": ended_at, "seconds": seconds, "breaches": breaches})


def last_audit(client: Redis) -> LastAudit | None:
    """Return the last audit; None if no audit is known."""
    noted = client.hgetall(_AUDIT)
    if not noted:
        return None
    return LastAudit(
        ended_at=float(noted["ended_at"]), seconds=float(noted["seconds"]), breaches=int(noted["breaches"])
    )
