"""The text of `GET /metrics`, in the format of Prometheus."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.utils import floatToGoString
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.batches.queue import count_queued
from app.batches.schedule import count_scheduled
from app.events.sequencer import count_unnumbered
from app.messaging import process_redis, worker_counters
from app.messaging.jobs import messages_waiting
from app.messaging.worker_counters import FAMILIES, KEY, SUM, Family
from app.metrics import DIRECTORY
from app.postgres import partitions
from app.postgres.connections import new_engine, wait_at_most
from app.postgres.safety import safety
from app.postgres.snapshots import oldest_snapshot
from app.postgres.standby import state_of_standby
from app.settings import settings
from app.webhooks.lag import LagOfStatus, lag_by_status, lags

# Time limit of counting the queue, which is an index scan.
_COUNT_TIMEOUT_S = 1.0


def _gauges(*figures: tuple[str, str, float]) -> Iterator[GaugeMetricFamily]:
    return (GaugeMetricFamily(name, about, value=value) for name, about, value in figures)


def queue() -> Iterator[GaugeMetricFamily]:
    """Yield how much is queued, scheduled and unnumbered, and for how long the oldest of each has waited; how old
    the oldest snapshot is; what room is ahead; and what PostgreSQL says of its log and its transaction ids.

    It opens its own connection, since the figures matter most when the pool is exhausted.

    Raises:
        SQLAlchemyError: PostgreSQL is out of reach, or too slow.
    """
    engine = new_engine(settings().database_url, pool_size=1, pooler=settings().database_pooler)
    try:
        with engine.begin() as connection:
            wait_at_most(connection, _COUNT_TIMEOUT_S)
            queued, scheduled = count_queued(connection), count_scheduled(connection)
            unnumbered = count_unnumbered(connection)
            behind = lag_by_status(lags(connection))
            snapshot = oldest_snapshot(connection)
            ahead = partitions.look(connection).ahead
            safe = safety(connection)
    finally:
        engine.dispose()
    yield from _gauges(
        ("points_queued_batches", "Batches accepted and not yet final.", queued.batches),
        ("points_queued_reversals", "Reversals accepted and not yet final.", queued.reversals),
        (
            "points_oldest_queued_seconds",
            "Age of the oldest queued batch or reversal; 0 when none is queued.",
            queued.oldest_s or 0,
        ),
        ("points_scheduled_batches", "Batches that wait for their moment.", scheduled.batches),
        (
            "points_oldest_overdue_seconds",
            "How long the scheduled batch that is longest due has waited to be queued; 0 when none is due.",
            scheduled.oldest_overdue_s,
        ),
        ("points_unnumbered_events", "Events without a sequence yet.", unnumbered.events),
        (
            "points_oldest_unnumbered_seconds",
            "How long the oldest event without a sequence has waited for it; 0 when there is none.",
            unnumbered.oldest_s,
        ),
        (
            "points_oldest_snapshot_seconds",
            "Age of the oldest snapshot that vacuum must keep dead rows for; 0 when there is none.",
            0 if snapshot is None else snapshot.seconds,
        ),
        ("points_partitions_ahead", "Partitions of transactions beyond that of the newest batch.", ahead),
        ("points_archive_failing", "Whether PostgreSQL failed when it last archived its log.", safe.archive_fails),
        ("points_slot_retained_bytes", "How much of its log PostgreSQL keeps for a slot.", safe.slot_bytes),
        (
            "points_transaction_id_age",
            "Age of PostgreSQL's oldest transaction id; it takes no writes near 2 thousand million.",
            safe.transaction_id_age,
        ),
    )
    yield from _webhooks(behind)


def standby() -> Iterator[GaugeMetricFamily]:
    """Yield whether there is a standby that reads may ask, and how far it is behind; nothing without the setting.

    Raises:
        SQLAlchemyError: PostgreSQL is out of reach, or too slow.
    """
    state = state_of_standby(timeout_s=_COUNT_TIMEOUT_S)
    if state is None:
        return
    is_up = not isinstance(state, str)
    yield from _gauges(("points_standby_up", "Whether the standby of DATABASE_READ_URL follows.", is_up))
    if not isinstance(state, str):
        yield from _gauges(
            ("points_standby_lag_bytes", "How much of the log the standby has not replayed.", state.lag_bytes),
            ("points_standby_lag_seconds", "Age of the newest commit on a standby that is behind.", state.lag_s),
        )


def _webhooks(behind: Mapping[str, LagOfStatus]) -> Iterator[GaugeMetricFamily]:
    """Yield how many webhooks there are and the largest lag, by status and not by webhook."""
    counts = GaugeMetricFamily("points_webhooks", "Webhooks, by status.", labels=("status",))
    events = GaugeMetricFamily(
        "points_webhook_lag_events", "Events that the webhook which is furthest behind has to pass.", labels=("status",)
    )
    seconds = GaugeMetricFamily(
        "points_webhook_lag_seconds", "Age of the oldest event that a webhook has not passed yet.", labels=("status",)
    )
    for status, lag in behind.items():
        for family, value in ((counts, lag.webhooks), (events, lag.events), (seconds, lag.seconds)):
            family.add_metric((status,), value)
    yield from (counts, events, seconds)


def broker() -> Iterator[GaugeMetricFamily]:
    """Yield the number of messages that wait in the broker, or nothing while it is out of reach."""
    messages = messages_waiting()
    if messages is not None:
        yield from _gauges(("points_broker_messages", "Messages in the broker, waiting for a worker.", messages))


def notes(client: Redis) -> Iterator[GaugeMetricFamily]:
    """Yield when a sweep and beat last ran, and the result of the last audit; nothing for what has not run yet.

    Raises:
        RedisError: Redis is out of reach.
    """
    for name, about, at in (
        ("points_last_sweep_timestamp_seconds", "When a sweep last ran.", worker_counters.swept_at(client)),
        ("points_last_beat_timestamp_seconds", "When beat last scheduled.", worker_counters.beat_at(client)),
    ):
        if at is not None:
            yield from _gauges((name, about, at))
    audit = worker_counters.last_audit(client)
    if audit is not None:
        yield from _gauges(
            ("points_last_audit_timestamp_seconds", "When an audit last ended.", audit.ended_at),
            ("points_audit_seconds", "How long the last audit took.", audit.seconds),
            ("points_audit_breaches", "Breaches that the last audit found.", audit.breaches),
        )


def work(client: Redis) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
    """Yield every family.

    Raises:
        RedisError: Redis is out of reach.
    """
    counts = {str(field): float(amount) for field, amount in client.hgetall(KEY).items()}
    for family in FAMILIES:
        yield _histogram(family, counts) if family.buckets else _counter(family, counts)


def _counter(family: Family, counts: Mapping[str, float]) -> CounterMetricFamily:
    metric = CounterMetricFamily(family.name, family.help, labels=family.labels)
    amounts = dict.fromkeys(family.known if family.labels else ((),), 0.0)
    for field, amount in counts.items():
        name, *labels = field.split("|")
        if name == family.name:
            amounts[tuple(labels)] = amount
    for values, amount in sorted(amounts.items()):
        metric.add_metric(values, amount)
    return metric


def _histogram(family: Family, counts: Mapping[str, float]) -> HistogramMetricFamily:
    fields = [family.field(bound) for bound in (*(f"{limit:g}" for limit in family.buckets), "+Inf")]
    bounds = [*map(floatToGoString, family.buckets), "+Inf"]
    metric = HistogramMetricFamily(family.name, family.help)
    metric.add_metric(
        (),
        buckets=list(zip(bounds, itertools.accumulate(counts.get(field, 0) for field in fields), strict=True)),
        sum_value=counts.get(family.field(SUM), 0),
    )
    return metric


CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

# Anybody may request the page, so each process reads the servers no more often than this.
CACHED_S = 1.0


class _ServerMetrics:
    """The figures from Redis and PostgreSQL. If a server is away, only its own figures are missing."""

    def collect(self) -> Iterator[Metric]:
        client = process_redis.redis()
        for read in (lambda: work(client), lambda: notes(client), broker, queue, standby):
            yield from _all_or_none(read)


def _all_or_none(read: Callable[[], Iterator[Metric]]) -> list[Metric]:
    try:
        return list(read())
    except (RedisError, SQLAlchemyError):
        return []  # An alert notices absent figures; zeros or old figures would mislead.


class Page:
    """The page, kept for `CACHED_S`. One thread renews it; meanwhile the others return the old text."""

    def __init__(self) -> None:
        self._renewal = threading.Lock()
        self._text: bytes | None = None
        self._made_at = 0.0

    def text(self) -> bytes:
        if not self._renewal.acquire(blocking=self._text is None):
            assert self._text is not None, "without a page the lock is waited for"
            return self._text
        try:
            if self._text is None or time.monotonic() - self._made_at > CACHED_S:
                self._text = _generate()
                self._made_at = time.monotonic()
            return self._text
        finally:
            self._renewal.release()


def _generate() -> bytes:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=DIRECTORY)  # type: ignore[no-untyped-call]
    registry.register(_ServerMetrics())
    return generate_latest(registry)


page = Page()
