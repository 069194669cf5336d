"""The files of the web processes: each takes a slot, who replaces a dead one counts on, and nothing piles up."""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import MultiProcessCollector

from app.metrics import processes


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let this process be a master whose directory lies in the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")  # Put back what was there before.
    processes.share()
    found = processes.directory()
    assert found is not None
    yield found
    processes.remove()
    while processes._held:
        processes._held.pop().close()


class Web:
    """A web process of a test."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.unit.counting_web"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def count(self, requests: int) -> str:
        """Count requests, and return the slot that they were counted into."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{requests}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self, number: int | None = None) -> None:
        """End it as its master does, or by a signal."""
        if number is not None:
            self.process.send_signal(number)
        self.process.communicate(timeout=30)
        processes.forget(self.process.pid)


def counted(shared: Path) -> float:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(shared))  # type: ignore[no-untyped-call]
    labels = {"method": "GET", "route": "/test", "status": "200"}
    return registry.get_sample_value("points_requests_total", labels) or 0


def allowed(shared: Path) -> float | None:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(shared))  # type: ignore[no-untyped-call]
    return registry.get_sample_value("points_database_connections", {"which": "allowed"})


def test_processes_at_once_have_slots_of_their_own_and_add_up(shared: Path) -> None:
    webs = [Web(), Web()]
    assert {web.count(3) for web in webs} == {"0", "1"}
    assert counted(shared) == 6
    for web in webs:
        web.end()


@pytest.mark.parametrize("number", [None, signal.SIGKILL])
def test_who_takes_the_place_of_a_dead_process_counts_on_in_its_files(shared: Path, number: Any) -> None:
    first = Web()
    assert first.count(5) == "0"
    first.end(number)
    assert counted(shared) == 5
    files = sorted(path.name for path in shared.iterdir())
    second = Web()
    assert second.count(2) == "0"
    second.end()
    assert counted(shared) == 7
    assert sorted(path.name for path in shared.iterdir()) == files


def test_the_connections_of_a_dead_process_count_no_more(shared: Path) -> None:
    webs = [Web(), Web()]
    for web in webs:
        web.count(1)
    shown = []
    for web in webs:
        shown.append(allowed(shared))
        web.end(signal.SIGKILL)
    assert [*shown, allowed(shared)] == [20, 10, None]  # Ten each.


def test_what_a_killed_master_left_is_removed_and_what_a_living_one_uses_stays(shared: Path, tmp_path: Path) -> None:
    abandoned = tmp_path / "points-metrics-abandoned"
    abandoned.mkdir()
    (abandoned / "lock").touch()
    (abandoned / "counter_0.db").touch()
    stranger = tmp_path / "points-metrics-link"
    stranger.symlink_to(tmp_path)
    processes.share()
    assert not abandoned.exists()
    assert shared.exists()
    assert stranger.is_symlink()
