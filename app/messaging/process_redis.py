"""This process's client for Redis, shared by hints, counters, notes and status.

Each call to a Redis that accepts connections but never answers takes the whole time limit. So after a failure, callers
that can work without Redis do not call it for a second: a drain of many organizations must not wait for it repeatedly.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from redis import Redis
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.sentinel import Sentinel

from app.settings import settings
from app.values.redis_address import Sentinels, names_sentinels


def redis_client(url: str, *, timeout_s: float, **options: Any) -> Redis:
    """Make a client that gives up after `timeout_s`. It asks Sentinels, if any, again after each disconnection."""
    timeouts = {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s}
    if not names_sentinels(url):
        return Redis.from_url(url, **timeouts, **options)
    watched = Sentinels.of(url)
    sentinel = Sentinel(watched.hosts, sentinel_kwargs={**timeouts, **watched.login()})  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(  # type: ignore[no-untyped-call]
        watched.master,
        db=watched.db,
        username=watched.username,
        password=watched.password,
        **timeouts,
        **options,
    )
    return client


_TIMEOUT_S = 1.0
# A connection that was idle for this long is checked with a PING. The listener for hints repeats the PING every second
# until Redis answers.
_HEALTH_CHECK_INTERVAL_S = 5
_LEFT_ALONE_S = 1.0

# Until when (`time.monotonic`) this process does not call Redis.
_left_alone_until = 0.0


class LeftAlone(RedisConnectionError):
    """Redis failed less than a second ago, so it is not called."""


@lru_cache(maxsize=1)
def redis() -> Redis:
    """Return this process's client. It connects at first use."""
    return redis_client(
        settings().redis_url,
        timeout_s=_TIMEOUT_S,
        health_check_interval=_HEALTH_CHECK_INTERVAL_S,
        decode_responses=True,
    )


@contextmanager
def unless_away() -> Iterator[Redis]:
    """Yield this process's client; if the block fails, do not call Redis for a second.

    Raises:
        LeftAlone: Redis failed less than a second ago.
        RedisError: Redis is away, or refuses to write.
    """
    global _left_alone_until  # noqa: PLW0603  # One Redis a process.
    if time.monotonic() < _left_alone_until:
        raise LeftAlone
    try:
        yield redis()
    except RedisError:
        _left_alone_until = time.monotonic() + _LEFT_ALONE_S
        raise


_WRITTEN = "points:readyz"

_DOES_NOT_ANSWER = "does not answer"
_BY_KIND: dict[type[RedisError], str] = {
    OutOfMemoryError: "has no memory left and refuses writes (OOM), until it has more (maxmemory) or is emptied",
    ReadOnlyError: "is a replica and refuses writes (READONLY), until REPLICAOF NO ONE or another REDIS_URL",
    BusyLoadingError: "is loading its files (LOADING), and answers when it has done so",
    AuthenticationError: "refuses the password or the user of REDIS_URL",
    NoPermissionError: "does not permit its user what the service needs (NOPERM): change its ACL",
}
# Those for which redis-py has no class, by the beginning of what Redis says.
_BY_WORDS = {
    "max number of clients reached": (
        "takes no more clients, until some of them end (CLIENT LIST) or it may have more (maxclients)"
    ),
    "MISCONF": "cannot save to its disk and refuses writes (MISCONF), until it can",
    "NOREPLICAS": "has too few replicas and refuses writes (NOREPLICAS), until they are back",
}


def require_writes(client: Redis) -> None:
    """Write what is gone in a second: a Redis that is read-only or full would answer a ping.

    Raises:
        RedisError: Redis is out of reach, or refuses to write.
    """
    client.set(_WRITTEN, 1, px=1_000)


def in_words(error: RedisError) -> str:
    """Return what is wrong with a Redis that failed like this, to follow its name."""
    for kind, words in _BY_KIND.items():
        if isinstance(error, kind):
            return words
    said = str(error)
    return next((words for begins, words in _BY_WORDS.items() if said.startswith(begins)), _DOES_NOT_ANSWER)
