"""Wake-ups over Redis: requests for drains, and hints about the batches that a drain has committed.

Both save time and decide nothing. When a hint is lost, the front's polling finds the batch. A request expires after a
second, so a lost one blocks others for no longer. A sweep needs neither.
"""

from collections.abc import Iterator, Sequence

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from app import logs
from app.messaging import process_redis, worker_counters
from app.messaging.worker_counters import Counts
from app.settings import settings

# Far longer than a message waits and its drain takes. After that, the message counts as lost.
_REQUEST_KEPT_S = 1.0

_CHANNEL = "points:drains"
_REQUEST = "points:drain-requested:{}"
_UNANSWERED_MAX = 3

_log = logs.logger()


def request_drain(organization_id: int) -> bool:
    """Note that an organization's drain is requested, and tell whether it was not requested before.

    False needs no message: a worker withdraws the request before its last look at the queue, and that look finds
    everything that was committed before this call. Without Redis this is unknown. Every request then counts as the
    first, or none if Redis is the broker too and cannot take a message.
    """
    key, kept_ms = _REQUEST.format(organization_id), int(_REQUEST_KEPT_S * 1000)
    try:
        with process_redis.unless_away() as redis:
            return bool(redis.set(key, 1, nx=True, px=kept_ms))
    except RedisError:
        return settings().broker_url is not None


def publish(organization_id: int, batch_ids: Sequence[int], counts: Counts | None = None) -> None:
    """Tell every front that these batches are final, withdraw the request for their drain, and add to the counters.

    One round trip. It never fails: a lost hint is only a delay, and lost counts are missing only in metrics.
    """
    try:
        with process_redis.unless_away() as redis, redis.pipeline(transaction=False) as pipeline:
            if batch_ids:
                pipeline.publish(_channel(redis), " ".join(map(str, batch_ids)))
            pipeline.delete(_REQUEST.format(organization_id))
            worker_counters.add(counts or {}, pipeline)
            pipeline.execute()
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
            # Python's lock to another thread, while all sends wait for this one.
            try:
                answer = connection.read_response(disconnect_on_error=False, push_request=True)
            except RedisTimeoutError:
                answer = None
                channel.check_health()
            # A connection to a frozen server looks healthy, and so does one through a proxy that has lost its server.
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
