"""Redis as this process reaches it: one client for hints, for what the workers count, and for what people look at."""

from functools import lru_cache

from redis import Redis

from app.redis_client import redis_client
from app.settings import settings

_TIMEOUT_S = 1.0
# A connection that was idle for so long is asked whether Redis is still there: about once a second, until it answers.
_HEALTH_CHECK_INTERVAL_S = 5


@lru_cache(maxsize=1)
def redis() -> Redis:
    """Return this process's client; its connections are made when they are first used."""
    return redis_client(
        settings().redis_url,
        timeout_s=_TIMEOUT_S,
        health_check_interval=_HEALTH_CHECK_INTERVAL_S,
        decode_responses=True,
    )
