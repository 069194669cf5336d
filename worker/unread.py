"""What a ping leaves in a Redis that is the broker when it is killed before it has read its answers.

It is a binding, and a list if an answer came. kombu forgets the bindings an hour after the last ping of all, so never
where one looks every minute, and the lists not at all. RabbitMQ forgets its queues by itself.
"""

from urllib.parse import urlsplit

from app.messaging.redis_client import redis_client
from app.settings import settings

FORGET_UNREAD_EVERY_S = 600.0

_BINDINGS = "_kombu.binding.reply.celery.pidbox"
_ANSWERS = "*.reply.celery.pidbox"
# A ping waits for seconds.
_ANSWERS_KEPT_S = 600
_TIMEOUT_S = 1.0


class Unread:
    """The bindings that this process has seen at its last look."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def forget(self) -> None:
        """Delete the bindings that were there at the last look too, and let the lists expire.

        Raises:
            RedisError: Redis is out of reach.
        """
        url = settings().broker_url or settings().redis_url
        if urlsplit(url).scheme.startswith("amqp"):
            return
        with redis_client(url, timeout_s=_TIMEOUT_S) as client:
            found = set(client.smembers(_BINDINGS))
            if old := found & self._seen:
                client.srem(_BINDINGS, *old)
            self._seen = found - old
            for answers in client.scan_iter(_ANSWERS, _type="list"):
                client.expire(answers, _ANSWERS_KEPT_S, nx=True)
