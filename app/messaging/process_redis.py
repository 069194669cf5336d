"""This process's client for Redis, shared by hints, counters and status."""

from functools import lru_cache

from redis import Redis

from app.messaging.redis_client import redis_client
from app.settings import settings

_TIMEOUT_S = 1.0
# A connection that was idle for this long is checked with a PING; the listener for hints repeats it every second until
# Redis answers.
_HEALTH_CHECK_INTERVAL_S = 5


@lru_cache(maxsize=1)
def redis() -> Redis:
    """Return this process's client. It connects at first use."""
    return redis_client(
        settings().redis_url,
        timeout_s=_TIMEOUT_S,
        health_check_interval=_HEALTH_CHECK_INTERVAL_S,
        decode_responses=True,
    )
