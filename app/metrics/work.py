"""The counts of the workers on all machines (app/messaging/worker_counters.py), as Prometheus shows them."""

import itertools
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString
from redis import Redis

from app.messaging.worker_counters import FAMILIES, KEY, SUM, Family


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
    shown = [*map(floatToGoString, family.buckets), "+Inf"]
    metric = HistogramMetricFamily(family.name, family.help)
    metric.add_metric(
        (),
        buckets=list(zip(shown, itertools.accumulate(counts.get(field, 0) for field in fields), strict=True)),
        sum_value=counts.get(family.field(SUM), 0),
    )
    return metric
