"""The state of the queue: the messages that wait in the broker, and the workers that answer."""

from typing import Any, NamedTuple

from kombu.exceptions import OperationalError

from app.messaging.jobs import CONFIRMED_WITHIN_S, QUEUE, celery


def messages_waiting() -> int | None:
    """Return how many messages wait for a worker; None when the broker is out of reach."""
    with celery.connection_for_read() as connection:
        try:
            connection.ensure_connection(max_retries=1, timeout=CONFIRMED_WITHIN_S)
            return _waiting_in(QUEUE, connection)
        except (OperationalError, *connection.connection_errors):  # The second kind: the connection was lost meanwhile.
            return None


def _waiting_in(queue: str, connection: Any) -> int:
    try:
        with connection.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).message_count)
    except connection.channel_errors:  # No such queue: on Redis it is empty, on RabbitMQ it was never used.
        return 0


class Answering(NamedTuple):
    """The workers that answer a ping: those that issue, those that deliver to webhooks; and whether beat answers."""

    workers: list[str]
    deliveries: list[str]
    beat: bool


def answering(*, timeout_s: float) -> Answering:
    """Ping all workers and beat, and return which of them answer in time."""
    try:
        answers = celery.control.ping(timeout=timeout_s)
    except OperationalError:
        return Answering([], [], beat=False)
    names = sorted(name for answer in answers for name in answer)
    beats = [name for name in names if name.startswith("celerybeat@")]
    deliveries = [name for name in names if name.startswith("deliveries")]
    workers = [name for name in names if name not in beats and name not in deliveries]
    return Answering(workers, deliveries, beat=bool(beats))
