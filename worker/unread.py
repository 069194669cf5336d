"""Removes what a ping leaves in Redis as the broker if it is killed before it has read its answers.

That is a binding, and a list if an answer came. kombu forgets bindings only an hour after the last ping of all, so
never where somebody pings every minute. It never forgets the lists. RabbitMQ forgets its queues by itself.
"""

from urllib.parse import urlsplit

from app.messaging.process_redis import redis_client
from app.settings import settings

FORGET_UNREAD_EVERY_S = 600.0

_BINDINGS = "_kombu.binding.reply.celery.pidbox"
_ANSWERS = "*.reply.celery.pidbox"
# Far longer than a ping waits.
_ANSWERS_KEPT_S = 600
_TIMEOUT_S = 1.0


class Unread:
    """The bindings that this process saw at its last look."""

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
