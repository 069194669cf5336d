"""The broker of the messages: Celery's settings for each kind."""

from typing import Any
from urllib.parse import urlsplit

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
        # RabbitMQ confirms each message. Otherwise one written to a closing connection is lost without an error.
        "confirm_publish": True,
        "connect_timeout": _RABBITMQ_TIMEOUT_S,
        "read_timeout": _RABBITMQ_TIMEOUT_S,
        "write_timeout": _RABBITMQ_TIMEOUT_S,
    }
