"""The state of the queue: the messages that wait in the broker, and the workers that answer."""

from typing import Any

from kombu.exceptions import OperationalError

from app.messaging.jobs import CONFIRMED_WITHIN_S, QUEUE, celery


def messages_waiting() -> int | None:
    """Return how many messages wait for a worker; None when the broker is out of reach."""
    with celery.connection_for_read() as connection:
        try:
            connection.ensure_connection(max_retries=1, timeout=CONFIRMED_WITHIN_S)
            return _waiting_in(QUEUE, connection)
        except (OperationalError, *connection.connection_errors):  # The second kind: it went away in between.
            return None


def _waiting_in(queue: str, connection: Any) -> int:
    try:
        with connection.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).message_count)
    except connection.channel_errors:  # There is no such queue: on Redis an empty one, on RabbitMQ an unused one.
        return 0


def answering(*, timeout_s: float) -> tuple[list[str], bool]:
    """Return the names of the workers that answer a ping in time, and whether beat does."""
    try:
        answers = celery.control.ping(timeout=timeout_s)
    except OperationalError:
        return [], False
    names = sorted(name for answer in answers for name in answer)
    workers = [name for name in names if not name.startswith("celerybeat@")]
    return workers, len(workers) < len(names)
