"""Web and worker processes are replaced while calls come in, and no call fails."""

from pathlib import Path

import pytest

from tests.operations.balancer import balancer
from tests.operations.load import issued_exactly, load
from tests.ports import free_port
from tests.service.deployment import deployment

pytestmark = pytest.mark.usefixtures("broker", "database")


def test_every_process_is_replaced_under_load_and_no_call_fails(tmp_path: Path) -> None:
    with deployment(tmp_path) as parts, balancer() as front:
        workers = {name: parts.worker(name) for name in ("worker1", "worker2")}
        web = {port: parts.web(port) for port in (free_port(), free_port())}
        front.targets = list(web)
        with load(front.port) as callers:
            for name, worker in workers.items():
                parts.stop_gracefully(worker)
                parts.worker(name)
                callers.goes_on()
            for port, process in web.items():
                front.targets = [other for other in web if other != port]
                parts.stop_gracefully(process)
                parts.web(port)
                front.targets = list(web)
                callers.goes_on()
        assert parts.deaths() == {}
        issued_exactly(callers)
