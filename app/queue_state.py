"""How the queue stands: the messages that wait in the broker, and the workers that answer."""

from typing import Any

from kombu.exceptions import OperationalError

from app.queue import CONFIRMED_WITHIN_S, QUEUE, SCHEDULED_QUEUE, celery


def messages_waiting() -> int | None:
    """Return how many messages wait for a worker, for sends and scheduled; None when the broker is out of reach."""
    with celery.connection_for_read() as connection:
        try:
            connection.ensure_connection(max_retries=1, timeout=CONFIRMED_WITHIN_S)
            return sum(_waiting_in(queue, connection) for queue in (QUEUE, SCHEDULED_QUEUE))
        except (OperationalError, *connection.connection_errors):  # The second where it goes in between.
            return None


def _waiting_in(queue: str, connection: Any) -> int:
    try:
        with connection.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).message_count)
    except connection.channel_errors:  # There is no such queue: on Redis an empty one, on RabbitMQ an unused one.
        return 0


def workers_answering(*, timeout_s: float) -> list[str]:
    """Return the names of the workers that answer a ping in time."""
    try:
        answers = celery.control.ping(timeout=timeout_s)
    except OperationalError:
        return []
    # Beat answers too where it runs with remote control, as in the compose file.
    return sorted(name for answer in answers for name in answer if not name.startswith("celerybeat@"))
