"""Section `idle`: a one-recipient send by a single caller, beside an empty Celery task's round trip.

The task uses the same broker, and a worker started like the service's. Its answer comes back in two ways: by a list
that the caller blocks on (the fastest), and by Celery's result (the usual one).
"""

import time
from collections.abc import Callable
from functools import partial

from redis import Redis

from benchmarks import empty_task, floor
from benchmarks.busy import ACCOUNTS, sends_of_one
from benchmarks.load import Plan, load
from benchmarks.options import Options
from benchmarks.rows import Measurement, Name, Row, named, percentile, take_turns

_TIMEOUT_S = 60


def measure(options: Options) -> list[Row]:
    """Measure the send, both round trips and the floor in turn."""
    with floor.beside() as (service, connection), empty_task.worker(), Redis.from_url(service.redis_url) as redis:
        send = sends_of_one(service, service.accounts("idle", ACCOUNTS), callers=1)
        measures: dict[Name, Measurement] = {
            named("floor", recipients=1): floor.measurement(connection, 1),
            named("send of one"): partial(_send, send, options.seconds),
            named("empty task, list"): partial(_repeat, partial(_by_list, redis), options.seconds),
            named("empty task, result"): partial(_repeat, _by_result, options.seconds),
        }
        return take_turns(measures, rounds=options.rounds)


def _send(plan: Plan, seconds: float) -> dict[str, float]:
    return load(plan, seconds=seconds)[0].figures()


def _by_list(redis: Redis) -> None:
    empty_task.with_reply.delay()
    assert redis.blpop([empty_task.REPLIES], timeout=_TIMEOUT_S) is not None, "the worker replies in time"


def _by_result() -> None:
    result = empty_task.with_result.delay()
    result.get(timeout=_TIMEOUT_S)
    result.forget()


def _repeat(call: Callable[[], None], seconds: float) -> dict[str, float]:
    """Call repeatedly for some seconds."""
    until = time.perf_counter() + seconds
    latencies_s = []
    while (started := time.perf_counter()) < until:
        call()
        latencies_s.append(time.perf_counter() - started)
    latencies_s.sort()
    return {"p50_s": percentile(latencies_s, 0.5), "p99_s": percentile(latencies_s, 0.99)}
