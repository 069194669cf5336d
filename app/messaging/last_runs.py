"""Last runs: when a sweep and an audit last ran and what they found, noted in Redis for `points status` and metrics."""

import time
from dataclasses import dataclass

from redis import Redis
from redis.exceptions import RedisError

from app import logs
from app.messaging import process_redis, worker_counters
from app.messaging.worker_counters import Counts

_SWEPT_AT = "points:swept_at"
_AUDIT = "points:audit"

# Sweeps run every second; a sweep of a long queue takes its time.
_OLD_S = 30.0
_COMES_WITHIN_S = 15.0
_LOOK_EVERY_S = 0.2

_log = logs.logger()


def note_sweep(counts: Counts) -> None:
    """Note that a sweep ran just now, and what it counted."""
    try:
        with process_redis.unless_away() as redis, redis.pipeline(transaction=False) as pipeline:
            pipeline.set(_SWEPT_AT, f"{time.time():.3f}")
            worker_counters.add(counts, pipeline)
            pipeline.execute()
    except process_redis.LeftAlone:
        return
    except RedisError as error:
        _log.warning("sweep_not_noted", **logs.kind_of(error))


def swept_at(client: Redis) -> float | None:
    """Return when a sweep last ran, in seconds since 1970 by its machine's clock; None if no sweep is known."""
    noted = client.get(_SWEPT_AT)
    return None if noted is None else float(str(noted))


def swept_s_ago(client: Redis) -> float | None:
    """Return how many seconds ago a sweep ran, by the clocks of the machines; None if no sweep is known."""
    at = swept_at(client)
    return None if at is None else max(0.0, time.time() - at)


def is_swept(client: Redis) -> bool:
    """Tell whether sweeps run: the last is young, or another comes within the time that a worker takes to start.

    An old one may be from before the service was started again, or by a clock that is behind. None known counts as
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
