"""What a worker's process does as it starts: which servers it takes."""

from importlib import import_module
from types import ModuleType

import pytest

from app.postgres import connections


@pytest.fixture
def processes() -> ModuleType:
    """Import it only now: importing the worker ends a process that has no settings yet."""
    return import_module("worker.processes")


def test_a_worker_takes_no_server_that_only_reads(processes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_writable_only", False)
    monkeypatch.setattr(connections, "_answer_timeout_s", 1.0)
    processes._after_fork()
    assert (connections._writable_only, connections._answer_timeout_s) == (True, connections.ANSWER_TIMEOUT_S)
