"""Workers that are gone, in Flower: soon shown no more, nor in its metrics."""

from pathlib import Path

import httpx
import pytest

from app.local import ports
from tests.deadline import TIMEOUT_S, comes_true, until
from tests.ports import free_port
from tests.service.deployment import deployment

# A minute by default.
_KEPT_S = 5


def _workers(client: httpx.Client) -> dict[str, bool]:
    """Return whether each worker on Flower's page is online."""
    try:
        found = client.get("/workers", params={"json": 1}).json()["data"]
    except httpx.TransportError:  # It is starting.
        return {}
    return {worker["hostname"].partition("@")[0]: worker["status"] for worker in found}


@pytest.mark.long
@pytest.mark.usefixtures("broker", "database")
def test_a_killed_worker_goes_from_the_page_and_the_metrics(tmp_path: Path) -> None:
    port = free_port()
    with deployment(tmp_path) as parts:
        parts.worker("stays")
        killed = parts.worker("killed")
        flower = parts.flower(port, FLOWER_PURGE_OFFLINE_WORKERS=str(_KEPT_S))
        with httpx.Client(base_url=f"http://{ports.HOST}:{port}", auth=("points", "hush"), timeout=30) as client:

            def shows(**workers: bool) -> None:
                in_time = comes_true(lambda: _workers(client) == workers, within_s=TIMEOUT_S)
                assert in_time, f"{_workers(client)}, not {workers}; deaths {parts.deaths()}; {parts.log(flower)}"

            shows(stays=True, killed=True)
            killed.hold_down()
            shows(stays=True)
            until(lambda: 'worker="killed@' not in client.get("/metrics").text)
            assert 'flower_worker_online{worker="stays@' in client.get("/metrics").text
