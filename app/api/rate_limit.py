"""The rate limit: per key, counted in Redis, checked before the body is read. Without Redis there is no limit."""

import logging
import time
from functools import lru_cache
from typing import Any

from flask import Flask, Response, request
from flask_limiter import ApplicationLimit, Limiter, RateLimitExceeded
from limits import parse
from limits.storage import RedisStorage

from app.api import envelope
from app.api.auth import hash_of_given_key
from app.messaging.process_redis import redis_client
from app.metrics.requests import current_record
from app.settings import settings

# While Redis is away, each process counts up to this limit, which no caller reaches. The library then retries Redis at
# growing intervals, so that a Redis that does not answer does not slow down every call.
_UNREACHED_LIMIT = "1000000/second"
_TIMEOUT_S = 1


class _NotingRedis(RedisStorage):
    """Redis as the library counts in it; the count is noted, so that the answer can say what is left."""

    STORAGE_SCHEME = ["noting-redis"]  # noqa: RUF012  # A list in the library too.

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        counted = super().incr(key, expiry, amount)
        current_record().calls_counted = counted
        return counted


def limit_rate(app: Flask) -> None:
    """Apply `POINTS_RATE_LIMIT` to every `/v1` call that carries a well-formed key."""
    # For each call over the limit the library would log the key's hash. The request's own log line says 429.
    logging.getLogger("flask-limiter").setLevel(logging.WARNING)
    # Any: the library's types allow only text here.
    pool: Any = redis_client(settings().redis_url, timeout_s=_TIMEOUT_S).connection_pool
    limiter = Limiter(
        _counter_name,
        app=app,
        enabled=settings().rate_limit != "off",
        application_limits=[ApplicationLimit(settings().rate_limit, exempt_when=_is_exempt)]
        if settings().rate_limit != "off"
        else [],
        storage_uri="noting-redis://",
        storage_options={"connection_pool": pool},
        in_memory_fallback=[_UNREACHED_LIMIT],
        swallow_errors=True,
        key_prefix="points",
    )
    app.register_error_handler(RateLimitExceeded, lambda _: _too_many(limiter))


def _too_many(limiter: Limiter) -> Response:
    sentence = f"The rate limit of a key is {settings().rate_limit}. Wait for the seconds that Retry-After names."
    response = envelope.failure(429, {"rate_limit": [sentence]})
    response.headers["Retry-After"] = str(retry_after_s(limiter))
    return response


def retry_after_s(limiter: Limiter) -> int:
    """Return the whole seconds until the limit admits the next request."""
    hit = limiter.current_limit
    if hit is None:
        return 1
    # Redis rounds to seconds, so `reset_at` may be two seconds late: never wait longer than a whole window.
    return max(1, min(hit.reset_at - int(time.time()), hit.limit.get_expiry()))


def add_what_is_left(response: Response) -> None:
    """Tell a caller of `/v1` the limit, and what is left of it; all of it, if nothing was counted."""
    rate = settings().rate_limit
    if rate != "off" and request.path.startswith("/v1/"):
        quota, policy = _policy(rate)
        left = max(0, quota - current_record().calls_counted)
        response.headers.update({"RateLimit-Policy": policy, "RateLimit": f'"key";r={left}'})


@lru_cache(maxsize=1)
def _policy(rate: str) -> tuple[int, str]:
    limit = parse(rate)
    return limit.amount, f'"key";q={limit.amount};w={limit.get_expiry()}'


def _is_exempt() -> bool:
    """Exempt calls without a well-formed key: answering them 401 is cheap, and there is no key to count by."""
    return not request.path.startswith("/v1/") or hash_of_given_key() is None


def _counter_name() -> str:
    """Count by the hash of the key, so that Redis never sees a key."""
    key_hash = hash_of_given_key()
    return "no key" if key_hash is None else key_hash.hex()  # The library rejects an empty name.
