"""Web and worker processes are replaced while calls come in, and no call fails."""

from pathlib import Path

import pytest

from tests.crash.proxy import Proxy
from tests.operations.load import issued_exactly, load
from tests.ports import free_port
from tests.service.deployment import deployment

pytestmark = pytest.mark.usefixtures("broker", "database")


@pytest.mark.long
def test_a_worker_and_a_web_process_are_replaced_under_load_and_no_call_fails(tmp_path: Path) -> None:
    there, leaving, coming = free_port(), free_port(), free_port()
    with deployment(tmp_path) as parts, Proxy(free_port(), there, leaving) as balancer:
        for name in ("stays", "replaced"):
            parts.worker(name)
        parts.web(there)
        web = parts.web(leaving)
        with load(balancer.port) as callers:
            parts.stop_gracefully(parts.part("replaced"))
            parts.worker("replaced")
            callers.goes_on()
            balancer.tell("targets", there)
            parts.stop_gracefully(web)
            parts.web(coming)
            balancer.tell("targets", there, coming)
            callers.goes_on()
        assert parts.deaths() == {}
        issued_exactly(callers)
