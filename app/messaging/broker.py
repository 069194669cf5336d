"""The broker of the messages: Celery's settings for each kind, what kombu must do otherwise, and what pings leave."""

from typing import Any
from urllib.parse import urlsplit

from kombu.transport import redis

from app.messaging.process_redis import redis_client
from app.settings import settings
from app.values.redis_address import Sentinels

# After this time without an acknowledgement, Redis gives a message to another worker. RabbitMQ does so as soon as the
# connection is lost.
VISIBILITY_TIMEOUT_S = 3_600

# After how many seconds without an answer a broker counts as away.
_REDIS_TIMEOUT_S = 1.0
# Each message is tried twice, and its send waits for that.
_RABBITMQ_TIMEOUT_S = 1.0


def broker_settings(url: str) -> dict[str, Any]:
    """Return Celery's settings for the broker at `url`."""
    kind = urlsplit(url).scheme
    if kind in ("amqp", "amqps"):
        return {"broker_url": url, "broker_transport_options": _rabbitmq()}
    options: dict[str, Any] = {
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        "socket_timeout": _REDIS_TIMEOUT_S,
        "socket_connect_timeout": _REDIS_TIMEOUT_S,
        "socket_keepalive": True,
        # In seconds. A connection that no longer answers is closed after at most twice this, plus one second.
        "health_check_interval": 5,
        # One list per queue. kombu's default is four, for priorities, and Redis must watch all of them each time.
        "priority_steps": [0],
    }
    if kind == "sentinel":
        sentinels = Sentinels.of(url)
        timeouts = {"socket_timeout": _REDIS_TIMEOUT_S, "socket_connect_timeout": _REDIS_TIMEOUT_S}
        options |= {"master_name": sentinels.master, "sentinel_kwargs": timeouts | sentinels.login()}
        url = ";".join(sentinels.urls())
    return {"broker_url": url, "broker_transport_options": options}


def _rabbitmq() -> dict[str, Any]:
    return {
        # RabbitMQ confirms each message. Otherwise a message written to a closing connection is lost without an error.
        "confirm_publish": True,
        "connect_timeout": _RABBITMQ_TIMEOUT_S,
        "read_timeout": _RABBITMQ_TIMEOUT_S,
        "write_timeout": _RABBITMQ_TIMEOUT_S,
    }


class AckFreesSlot(redis.QoS):
    """Frees the slot of a finished message even if its acknowledgement did not reach Redis.

    kombu keeps the slot in that case. After as many failed acknowledgements as the worker has processes (if Redis is
    silent for a second or two), the worker still answers pings but never takes a message again. The message itself is
    delivered again after the visibility timeout, and then there is nothing to do.
    """

    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]
        except Exception:
            self._quick_ack(delivery_tag)
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        try:
            super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]
        except Exception:
            self._quick_ack(delivery_tag)
            raise


_parameters = redis.Channel._connparams  # noqa: SLF001  # As the function below says.


def _parameters_of_a_connection_that_is_there(channel: redis.Channel, asynchronous: bool = False) -> Any:
    """Raise a connection error if the connection is gone. The function is private in kombu, but every use calls it.

    A channel that is closed after its connection was collected gives back its unacknowledged messages. kombu then asks
    None for its address, and the AttributeError ends the worker with status 1.
    """
    if channel.connection is None or channel.connection.client is None:
        raise ConnectionResetError("the connection was lost before its channel was closed")
    return _parameters(channel, asynchronous)  # type: ignore[no-untyped-call]


def patch_kombu() -> None:
    """Patch kombu's Redis channels in this process, behind Sentinels too. Safe to call repeatedly."""
    redis.Channel.QoS = AckFreesSlot
    redis.Channel._connparams = _parameters_of_a_connection_that_is_there  # type: ignore[method-assign]  # noqa: SLF001


_BINDINGS = "_kombu.binding.reply.celery.pidbox"
_ANSWERS = "*.reply.celery.pidbox"
# Far longer than a ping waits.
_ANSWERS_KEPT_S = 600
_TIMEOUT_S = 1.0


class Unread:
    """What a ping leaves in Redis as the broker if it is killed before it has read its answers.

    That is a binding, and a list if an answer came. kombu forgets bindings only an hour after the last ping of all, so
    never where somebody pings every minute. It never forgets the lists. RabbitMQ forgets its queues by itself.
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()  # The bindings at the last look.

    def forget(self) -> None:
        """Delete the bindings that were there at the last look too, and let the lists expire.

        Raises:
            RedisError: Redis is out of reach.
        """
        url = settings().broker_url or settings().redis_url
        if urlsplit(url).scheme.startswith("amqp"):
            return
        with redis_client(url, timeout_s=_TIMEOUT_S) as client:
            bindings = set(client.smembers(_BINDINGS))
            if old := bindings & self._seen:
                client.srem(_BINDINGS, *old)
            self._seen = bindings - old
            for answers in client.scan_iter(_ANSWERS, _type="list"):
                client.expire(answers, _ANSWERS_KEPT_S, nx=True)
