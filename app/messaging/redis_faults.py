"""What is wrong with a Redis that is away: in words, with what ends it."""

from redis import Redis
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
)

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
