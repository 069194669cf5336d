"""What the workers count, on its way: added to one hash in Redis, read back as metrics by the front."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString
from redis import Redis
from redis.exceptions import RedisError

from app import process_redis
from app.tally import FAMILIES, SEPARATOR, SUM, Family, Tally, tally

_KEY = "points:work"
_SHIP_EVERY_S = 1.0


def start() -> None:
    """Ship what this process counts, about once a second, from a thread of its own. Call it after the fork."""
    tally.forget_lock_of_the_parent()
    threading.Thread(target=_ship_for_ever, name="shipping", daemon=True).start()


def ship(counted: Tally = tally) -> None:
    """Add what was counted to Redis. While Redis is away it stays in memory, and nothing fails.

    The additions are one MULTI, all or none. An answer that was lost on its way back makes them
    count twice, which a figure for people bears better than a worker that waits.
    """
    counts = counted.take()
    if not counts:
        return
    try:
        with process_redis.redis().pipeline(transaction=True) as additions:
            for field, amount in counts.items():
                additions.hincrbyfloat(_KEY, field, amount)
            additions.execute()
    except RedisError:
        counted.give_back(counts)


def _ship_for_ever() -> None:
    while True:
        time.sleep(_SHIP_EVERY_S)
        with contextlib.suppress(Exception):  # Whatever it was, the next second may do better.
            ship()


def read(client: Redis) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
    """Yield every family as the workers of all machines have counted it.

    Raises:
        RedisError: Redis is out of reach.
    """
    counts = {str(field): float(amount) for field, amount in client.hgetall(_KEY).items()}
    for family in FAMILIES:
        yield _histogram(family, counts) if family.buckets else _counter(family, counts)


def _counter(family: Family, counts: Mapping[str, float]) -> CounterMetricFamily:
    metric = CounterMetricFamily(family.name, family.help, labels=family.labels)
    known = family.known if family.labels else ((),)
    values = {SEPARATOR.join((family.name, *labels)): 0.0 for labels in known}
    values |= {field: amount for field, amount in counts.items() if field.split(SEPARATOR)[0] == family.name}
    for field, amount in sorted(values.items()):
        metric.add_metric(field.split(SEPARATOR)[1:], amount)
    return metric


def _histogram(family: Family, counts: Mapping[str, float]) -> HistogramMetricFamily:
    bounds = [*(f"{bound:g}" for bound in family.buckets), "+Inf"]
    each = [counts.get(f"{family.name}{SEPARATOR}{bound}", 0) for bound in bounds]
    shown = [*map(floatToGoString, family.buckets), "+Inf"]
    metric = HistogramMetricFamily(family.name, family.help)
    metric.add_metric(
        (),
        buckets=list(zip(shown, itertools.accumulate(each), strict=True)),
        sum_value=counts.get(f"{family.name}{SEPARATOR}{SUM}", 0),
    )
    return metric
