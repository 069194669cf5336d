"""The broker that carries the messages, and what each kind of it has to be told."""

from typing import Any
from urllib.parse import urlsplit

from app.redis_client import Sentinels

SCHEMES = ("redis", "rediss", "sentinel", "amqp", "amqps")

# Redis gives a message to another worker after this time without an acknowledgement. (RabbitMQ does so as soon
# as the connection is gone.)
VISIBILITY_TIMEOUT_S = 3_600

# A broker that is gone, or accepts and never answers, is known to be so within this time.
_REDIS_TIMEOUT_S = 1.0
_RABBITMQ_TIMEOUT_S = 2.0


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
        # A connection that fell silent, as one behind a proxy may, is given up within twice this and a second.
        "health_check_interval": 5,
        # One list a queue. kombu keeps four, for priorities, and would have Redis watch all of them for each message.
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
        # RabbitMQ says that it has a message. Without, one written to a connection that is closing is lost unseen.
        "confirm_publish": True,
        "connect_timeout": _RABBITMQ_TIMEOUT_S,
        "write_timeout": _RABBITMQ_TIMEOUT_S,
    }
