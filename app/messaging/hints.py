"""Hints over Redis about the batches that a drain has committed.

They save time and decide nothing: when a hint is lost, the front's polling finds the batch.
"""

from collections.abc import Iterator, Sequence

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from app import logs
from app.messaging import process_redis, requests, worker_counters
from app.messaging.requests import Staying
from app.messaging.worker_counters import Counts

_CHANNEL = "points:drains"
_UNANSWERED_MAX = 3

_log = logs.logger()


def publish(
    organization_id: int, batch_ids: Sequence[int], counts: Counts | None = None, staying: Staying | None = None
) -> None:
    """Tell every front that these batches are final, withdraw the request for their drain, and add to the counters.

    One round trip, in which the worker also offers to stay. It never fails: a lost hint is only a delay, and lost
    counts are missing only in metrics.
    """
    try:
        with process_redis.unless_away() as redis, redis.pipeline(transaction=False) as pipeline:
            if batch_ids:
                pipeline.publish(_channel(redis), " ".join(map(str, batch_ids)))
            pipeline.delete(requests.key_of(organization_id))
            if staying is not None:
                staying.offer(pipeline)
            worker_counters.add(counts or {}, pipeline)
            answers = pipeline.execute()
            if staying is not None:
                staying.note(answers)
    except process_redis.LeftAlone:
        return
    except RedisError as error:
        _log.warning("hint_lost", batch_ids=list(batch_ids), **logs.kind_of(error))


def listen() -> Iterator[list[int] | None]:
    """Yield the batches of each hint, and None about once a second when there is none.

    Raises:
        RedisError: Redis went away or stopped answering; call again to listen again.
    """
    redis = process_redis.redis()
    with redis.pubsub() as channel:  # type: ignore[no-untyped-call]
        channel.subscribe(_channel(redis))
        connection = channel.connection
        while True:
            # The channel's own `get_message` makes five system calls for each message. At each, a busy process gives
            # Python's lock to another thread, while all sends wait for this thread.
            try:
                answer = connection.read_response(disconnect_on_error=False, push_request=True)
            except RedisTimeoutError:
                answer = None
                channel.check_health()
            # A connection to a frozen server looks healthy, and so does that to a proxy that has lost its server.
            if channel.health_check_response_counter > _UNANSWERED_MAX:
                raise RedisConnectionError("Redis has fallen silent")
            if channel.is_health_check_response(answer):
                channel.health_check_response_counter -= 1
            elif answer is None:
                yield None
            elif answer[0] == "message":
                yield list(map(int, answer[2].split()))


def _channel(redis: Redis) -> str:
    """Return the channel of this Redis database: a message published in one database is heard in all of them."""
    number = redis.get_connection_kwargs().get("db") or 0
    return f"{_CHANNEL}:{number}" if number else _CHANNEL
