"""How things stand: the queue as PostgreSQL knows it, and what sweep and audit have noted in Redis."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from redis import Redis

from app import last_runs
from app.connections import new_engine, wait_at_most
from app.ledger.queued import count_queued
from app.queue_state import messages_waiting
from app.settings import settings

# A look at the queue is an index scan. One that takes longer than this is given up.
_LOOK_TIMEOUT_S = 1.0


def queue() -> Iterator[GaugeMetricFamily]:
    """Yield how many batches are queued, and for how long the oldest has been.

    On a connection of its own: a pool that is used up is just what the figures shall tell about.

    Raises:
        SQLAlchemyError: PostgreSQL is out of reach, or too slow.
    """
    engine = new_engine(settings().database_url, pool_size=1, pooler=settings().database_pooler)
    try:
        with engine.begin() as connection:
            wait_at_most(connection, _LOOK_TIMEOUT_S)
            queued = count_queued(connection)
    finally:
        engine.dispose()
    yield GaugeMetricFamily(
        "points_queued_batches",
        "Batches accepted and not yet final.",
        value=queued.batches,
    )
    yield GaugeMetricFamily(
        "points_oldest_queued_seconds",
        "For how long the oldest queued batch has been queued; 0 when none is.",
        value=queued.oldest_s or 0,
    )


def broker() -> Iterator[GaugeMetricFamily]:
    """Yield the messages that wait in the broker, or nothing while it is out of reach."""
    messages = messages_waiting()
    if messages is not None:
        yield GaugeMetricFamily(
            "points_broker_messages", "Messages in the broker that wait for a worker.", value=messages
        )


def notes(client: Redis) -> Iterator[GaugeMetricFamily]:
    """Yield when a sweep last ran, and what the last audit said.

    A figure that nobody has noted yet is absent.

    Raises:
        RedisError: Redis is out of reach.
    """
    swept_at = last_runs.swept_at(client)
    if swept_at is not None:
        yield GaugeMetricFamily("points_last_sweep_timestamp_seconds", "When a sweep last ran.", value=swept_at)
    audit = last_runs.last_audit(client)
    if audit is not None:
        yield GaugeMetricFamily(
            "points_last_audit_timestamp_seconds", "When an audit last ended.", value=audit.ended_at
        )
        yield GaugeMetricFamily("points_audit_seconds", "What the last audit took.", value=audit.seconds)
        yield GaugeMetricFamily("points_audit_breaches", "Breaches that the last audit found.", value=audit.breaches)
