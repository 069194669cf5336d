"""What gunicorn's processes count adds up, outlives each of them, and ends with their master."""

import os
import signal
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.local import ports
from app.metrics.page import CACHED_S
from tests.deadline import until
from tests.ports import free_port
from tests.service.deployment import deployment, is_ready

pytestmark = [pytest.mark.usefixtures("broker", "database"), pytest.mark.long]

_REQUESTS = ("points_requests_total", "GET", "/healthz", "200")
_ALLOWED = ("points_database_connections", "allowed")
_ALLOWED_A_PROCESS = 10


def test_no_count_falls_when_a_web_process_dies_and_no_master_shows_what_another_has_counted(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    # As of a master that this one replaces, which may remove it at any moment.
    others = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "none")}
    with deployment(tmp_path, WEB_CONCURRENCY="2", TMPDIR=str(folder), **others) as parts:
        port = free_port()
        web = parts.web(port)

        def shown(name: tuple[str, ...]) -> float:
            return figures(port).get(name, 0.0)

        def of_two_processes() -> bool:
            return shown(_ALLOWED) == 2 * _ALLOWED_A_PROCESS

        until(of_two_processes)
        ask(port, times=20)
        until(lambda: shown(_REQUESTS) == 20)
        time.sleep(CACHED_S)  # Until no process still shows the page that it made before these requests.

        before = {process.pid for process in psutil.Process(web.pid).children()}
        os.kill(min(before), signal.SIGKILL)
        pages: list[dict[tuple[str, ...], float]] = []

        def another_has_its_place() -> bool:
            pages.append(figures(port))
            now = {process.pid for process in psutil.Process(web.pid).children()}
            return len(now - before) == 1 and pages[-1].get(_ALLOWED) == 2 * _ALLOWED_A_PROCESS

        until(another_has_its_place)
        assert {page.get(_REQUESTS) for page in pages} == {20}
        ask(port, times=5)
        until(lambda: shown(_REQUESTS) == 25)

        [left] = folder.glob("points-metrics-*")
        master = web.pid
        os.kill(master, signal.SIGKILL)
        until(lambda: web.pid != master and is_ready(port))
        until(of_two_processes)
        assert shown(_REQUESTS) == 0
        parts.stop_gracefully(web)
        assert list(folder.glob("points-metrics-*")) == [left]


def ask(port: int, *, times: int) -> None:
    """Ask on a connection each, so that each process answers some."""
    for _ in range(times):
        with urllib.request.urlopen(f"http://{ports.HOST}:{port}/healthz", timeout=30) as answer:
            assert answer.status == 200


def figures(port: int) -> dict[tuple[str, ...], float]:
    """Return every sample of a page: its name and the values of its labels, by the labels' names."""
    with urllib.request.urlopen(f"http://{ports.HOST}:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
