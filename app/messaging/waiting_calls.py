"""Calls of a key that wait for an event, counted in Redis over all web processes. Without Redis nothing is limited."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from redis.exceptions import RedisError

from app.messaging import process_redis

_WAITING = "points:waiting:{}"
# A call whose process died counts for this much longer than it would have waited.
_GRACE_S = 5


@contextmanager
def place(key: str, *, wait_s: float, at_most: int) -> Iterator[bool]:
    """Hold one of a key's places for the block; yield False if all are taken."""
    name, call, now = _WAITING.format(key), uuid.uuid4().hex, time.time()
    try:
        with process_redis.unless_away() as redis, redis.pipeline(transaction=True) as pipeline:
            pipeline.zremrangebyscore(name, "-inf", now)
            pipeline.zadd(name, {call: now + wait_s + _GRACE_S})
            pipeline.zcard(name)
            pipeline.expire(name, int(wait_s) + 2 * _GRACE_S)
            _, _, taken, _ = pipeline.execute()
    except RedisError:
        yield True
        return
    try:
        yield taken <= at_most
    finally:
        with contextlib.suppress(RedisError), process_redis.unless_away() as redis:
            redis.zrem(name, call)
