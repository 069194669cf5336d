"""What a worker's process does as it starts and ends: which servers it takes, and what becomes of its counts."""

from functools import lru_cache
from importlib import import_module
from types import ModuleType

import pytest
from fakeredis import FakeRedis

from app import connections, process_redis
from app.metrics import shipping
from app.tally import SWEEPS, tally


@pytest.fixture
def processes() -> ModuleType:
    """Import it only now: importing the worker ends a process that has no settings yet."""
    return import_module("worker.processes")


def test_a_worker_takes_no_server_that_only_reads(processes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_writable_only", False)
    monkeypatch.setattr(connections, "_answer_timeout_s", 1.0)
    monkeypatch.setattr(shipping, "start", lambda: None)
    processes._after_fork()
    assert (connections._writable_only, connections._answer_timeout_s) == (True, connections.ANSWER_TIMEOUT_S)


def test_what_a_worker_has_counted_last_is_shipped_before_it_ends(
    processes: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeRedis(decode_responses=True) as redis:
        monkeypatch.setattr(process_redis, "redis", lru_cache(lambda: redis))
        tally.count(SWEEPS)
        processes._before_end()
        shown = {metric.name: [sample.value for sample in metric.samples] for metric in shipping.read(redis)}
    assert shown["points_sweeps"] == [1]
