"""The rate limit: per key, counted in Redis, checked before the body is read. It fails open."""

import logging
import time
from typing import Any

from flask import Flask, request
from flask_limiter import ApplicationLimit, Limiter

from app.api.auth import well_formed_key_of_request
from app.keys import hash_key
from app.redis_client import redis_client
from app.settings import settings

# While Redis is away each process counts for itself, up to what nobody reaches. Redis is then asked
# again at growing intervals only: one that accepts and never answers must not slow every call down.
_OPEN = "1000000/second"
_TIMEOUT_S = 1


def limit_rate(app: Flask) -> Limiter:
    """Put the limit of `POINTS_RATE_LIMIT` before every `/v1` call that carries a well-formed key."""
    # It names each call over the limit by the hash of its key; the call's own line says 429.
    logging.getLogger("flask-limiter").setLevel(logging.WARNING)
    # Its types promise only what an address could say.
    pool: Any = redis_client(settings().redis_url, timeout_s=_TIMEOUT_S).connection_pool
    return Limiter(
        _counted_as,
        app=app,
        enabled=settings().rate_limit != "off",
        application_limits=[ApplicationLimit(settings().rate_limit, exempt_when=_is_exempt)]
        if settings().rate_limit != "off"
        else [],
        storage_uri="redis://",
        storage_options={"connection_pool": pool},
        in_memory_fallback=[_OPEN],
        swallow_errors=True,
        key_prefix="points",
    )


def retry_after_s(limiter: Limiter) -> int:
    """Return the whole seconds until the limit that this request hit admits the next one."""
    hit = limiter.current_limit
    if hit is None:
        return 1
    # Redis says it in whole seconds, so `reset_at` is up to two later than that, but never later than a whole window.
    return max(1, min(hit.reset_at - int(time.time()), hit.limit.get_expiry()))


def _is_exempt() -> bool:
    """A call without a well-formed key is a 401 that costs nothing, and has no key to be counted by."""
    return not request.path.startswith("/v1/") or well_formed_key_of_request() is None


def _counted_as() -> str:
    """Count a key under its hash: Redis is not told what would open the door."""
    key = well_formed_key_of_request()
    return "no key" if key is None else hash_key(key).hex()  # Nothing at all is a fault to the library.
