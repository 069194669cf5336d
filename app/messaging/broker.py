"""The broker of the messages: Celery's settings for each kind."""

from typing import Any
from urllib.parse import urlsplit

from app.values.redis_address import Sentinels

# Redis gives a message to another worker after this time without an acknowledgement. RabbitMQ does so as soon as the
# connection is lost.
VISIBILITY_TIMEOUT_S = 3_600

# How soon a broker that does not answer counts as away.
_REDIS_TIMEOUT_S = 1.0
# RabbitMQ is tried twice for a message, and the send that asks waits for it.
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
        # One list a queue. kombu's default is four, for priorities, and each message makes Redis watch all of them.
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
