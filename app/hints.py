"""Hints: over Redis, a worker tells waiting fronts which batches it has just committed.

A hint saves time and decides nothing. Whoever hears one reads the batch's row; whoever misses one
finds out from its own polling.
"""

from collections.abc import Iterator
from typing import NamedTuple

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from app import counters, logs, process_redis
from app.counters import Counts

_CHANNEL = "points:drains"
_UNANSWERED_MAX = 3

_log = logs.logger()


class Hint(NamedTuple):
    """What a worker says of an organization's drain: which batches are final, and whether its message is done with.

    A worker that has left found nothing more to issue, at a moment when it owned the drain no more. One that found an
    owner has issued nothing: the owner looks again before it leaves. `asked_for` is the batch that the message names;
    None of a message that no front has sent.
    """

    organization_id: int
    batch_ids: list[int]
    has_left: bool
    found_owner: bool = False
    asked_for: int | None = None


def publish(hint: Hint, counts: Counts | None = None) -> None:
    """Tell every front, and add to the counters in the same round trip.

    Never fails: an unheard hint is only a delay, and counts that are lost are missing in figures for people alone.
    """
    try:
        words = (hint.organization_id, int(hint.has_left), int(hint.found_owner), hint.asked_for or 0, *hint.batch_ids)
        redis = process_redis.redis()
        with redis.pipeline(transaction=False) as pipeline:
            pipeline.publish(_channel(redis), " ".join(map(str, words)))
            counters.add(counts or {}, pipeline)
            pipeline.execute()
    except RedisError as error:
        _log.warning("hint_lost", batch_ids=hint.batch_ids, **logs.kind_of(error))


def listen() -> Iterator[Hint | None]:
    """Yield each hint, and None about once a second when there is none.

    Raises:
        RedisError: Redis went away or fell silent; call again to listen anew.
    """
    redis = process_redis.redis()
    with redis.pubsub() as channel:  # type: ignore[no-untyped-call]
        channel.subscribe(_channel(redis))
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


def _channel(redis: Redis) -> str:
    """Return the channel of our numbered database: what is published in one is heard in all of them."""
    number = redis.get_connection_kwargs().get("db") or 0
    return f"{_CHANNEL}:{number}" if number else _CHANNEL


def _read(words: str) -> Hint:
    organization_id, has_left, found_owner, asked_for, *batch_ids = map(int, words.split())
    return Hint(organization_id, batch_ids, bool(has_left), bool(found_owner), asked_for or None)
