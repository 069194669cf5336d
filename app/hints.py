"""Hints: over Redis, a worker tells waiting fronts which batches it has just committed.

A hint saves time and decides nothing. Whoever hears one reads the batch's row; whoever misses one
finds out from its own polling.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from app import logs
from app.redis_client import redis_client
from app.settings import settings

_CHANNEL = "points:final"
_SWEPT_AT = "points:swept_at"
_AUDIT = "points:audit"
_TIMEOUT_S = 1.0
# A connection that was idle for so long is asked whether Redis is still there: about once a second, until it answers.
_HEALTH_CHECK_INTERVAL_S = 5
_UNANSWERED_MAX = 3

_log = logs.logger()


@lru_cache(maxsize=1)
def redis() -> Redis:
    """Return this process's client; its connections are made when they are first used."""
    return redis_client(
        settings().redis_url,
        timeout_s=_TIMEOUT_S,
        health_check_interval=_HEALTH_CHECK_INTERVAL_S,
        decode_responses=True,
    )


class Hint(NamedTuple):
    """What a worker says of an organization's drain: which batches are final, and whether it has left.

    A worker that has left found nothing more to issue, at a moment when it owned the drain no more.
    """

    organization_id: int
    batch_ids: list[int]
    has_left: bool


def publish(hint: Hint) -> None:
    """Tell every front. Never fails: an unheard hint is only a delay."""
    try:
        redis().publish(_CHANNEL, " ".join(map(str, (hint.organization_id, int(hint.has_left), *hint.batch_ids))))
    except RedisError as error:
        _log.warning("hint_lost", batch_ids=hint.batch_ids, **logs.kind_of(error))


def listen() -> Iterator[Hint | None]:
    """Yield each hint, and None about once a second when there is none.

    Raises:
        RedisError: Redis went away or fell silent; call again to listen anew.
    """
    with redis().pubsub() as channel:  # type: ignore[no-untyped-call]
        channel.subscribe(_CHANNEL)
        connection = channel.connection
        while True:
            # The channel's own `get_message` asks the kernel five times for each message, and each time a busy
            # process gives Python's lock to another of its threads, while everybody waits for this one.
            try:
                answer = connection.read_response(disconnect_on_error=False, push_request=True)
            except RedisTimeoutError:
                answer = None
                channel.check_health()
            # A frozen server, or a proxy whose far side is gone, says nothing, and its connection looks well.
            if channel.health_check_response_counter > _UNANSWERED_MAX:
                raise RedisConnectionError("Redis has fallen silent")
            if channel.is_health_check_response(answer):
                channel.health_check_response_counter -= 1
            elif answer is None:
                yield None
            elif answer[0] == "message":
                yield _read(answer[2])


def _read(words: str) -> Hint:
    organization_id, has_left, *batch_ids = map(int, words.split())
    return Hint(organization_id=organization_id, batch_ids=batch_ids, has_left=bool(has_left))


def note_sweep() -> None:
    """Note that a sweep ran just now, for the people who look whether beat and a worker do."""
    try:
        redis().set(_SWEPT_AT, f"{time.time():.3f}")
    except RedisError as error:
        _log.warning("sweep_not_noted", **logs.kind_of(error))


def swept_at(client: Redis) -> float | None:
    """Return when a sweep last ran, in seconds since 1970 by the clock of its machine, or None if none is known."""
    noted = client.get(_SWEPT_AT)
    return None if noted is None else float(str(noted))


def swept_s_ago(client: Redis) -> float | None:
    """Return how many seconds ago a sweep ran, by the clocks of the machines, or None if none is known."""
    at = swept_at(client)
    return None if at is None else max(0.0, time.time() - at)


@dataclass(frozen=True, kw_only=True, slots=True)
class LastAudit:
    """What the last audit said: when it ended (seconds since 1970), what it took, how many breaches it found."""

    ended_at: float
    seconds: float
    breaches: int


def note_audit(*, seconds: float, breaches: int) -> None:
    """Note what an audit found that ended just now, for the people who watch.

    Raises:
        RedisError: Redis is out of reach.
    """
    redis().hset(_AUDIT, mapping={"ended_at": f"{time.time():.3f}", "seconds": seconds, "breaches": breaches})


def last_audit(client: Redis) -> LastAudit | None:
    """Return what the last audit said, or None if none is known."""
    noted = client.hgetall(_AUDIT)
    if not noted:
        return None
    return LastAudit(
        ended_at=float(noted["ended_at"]), seconds=float(noted["seconds"]), breaches=int(noted["breaches"])
    )
