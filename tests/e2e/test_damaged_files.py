"""Files of the embedded servers that are damaged or gone: the service heals, and says what it has moved."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.deadline import until
from tests.service.inside import Service

pytestmark = pytest.mark.long

_HEALS_WITHIN_S = 30
# PostgreSQL looks once a minute whether its lock file is there.
_NOTICES_WITHIN_S = 90


@pytest.fixture(scope="module")
def own_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service for the tests of this file. At its end the books balance."""
    with Service(tmp_path_factory.mktemp("damaged") / "data").running() as running:
        yield running


def _send(service: Service) -> int:
    key = json.loads((service.data_dir / "demo.json").read_text())["live"]
    try:
        return service.send(key, {"recipient": "ada@example.com", "amount": 1}).status_code
    except httpx.TransportError:
        return 0


def _damage(service: Service) -> bytes:
    """Overwrite the middle half of what Valkey has written; return what is there then."""
    written = next((service.data_dir / "valkey" / "appendonlydir").glob("*.incr.aof"))
    content = bytearray(written.read_bytes())
    quarter = len(content) // 4
    content[quarter:-quarter] = bytes(len(content) - 2 * quarter)
    written.write_bytes(content)
    return bytes(content)


def _is_set_aside(service: Service, content: bytes) -> bool:
    """Tell whether the damaged file is kept, and the folder that it is in was named."""
    aside = service.data_dir / "valkey" / "appendonlydir.damaged"
    is_named = any(f"moved to {aside}" in line for line in service.output)
    return is_named and content in [file.read_bytes() for file in aside.iterdir()]


def _kill_valkey(service: Service, damage: Callable[[], bytes] = bytes) -> bytes:
    """Kill it, after damage done while it stands still, and wait until it is back; return what the damage returned."""
    pid = json.loads((service.data_dir / "running.json").read_text())["parts"]["valkey"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    content = damage()
    os.kill(pid, signal.SIGKILL)
    until(lambda: any("valkey │ died (signal 9)" in line for line in service.output), within_s=_HEALS_WITHIN_S)
    until(lambda: service.call("GET", "/readyz").json()["data"]["redis"] == "ok", within_s=_HEALS_WITHIN_S)
    return content


def test_a_valkey_that_died_starts_with_its_file_or_if_it_cannot_read_it_without(own_service: Service) -> None:
    own_service.output.clear()
    _kill_valkey(own_service)
    assert not (own_service.data_dir / "valkey" / "appendonlydir.damaged").exists()
    own_service.output.clear()
    content = _kill_valkey(own_service, lambda: _damage(own_service))
    assert _is_set_aside(own_service, content)
    assert _send(own_service) == 201


def test_a_valkey_that_cannot_read_its_file_at_the_start_starts_without_it(own_service: Service) -> None:
    for _ in range(2):  # And again, when there is one aside already.
        assert own_service.stop() == 0
        content = _damage(own_service)
        own_service.output.clear()
        own_service.start()
        assert _is_set_aside(own_service, content)
        assert _send(own_service) == 201


def test_a_postgresql_whose_lock_file_is_gone_ends_and_is_started_again(own_service: Service) -> None:
    lock_file = own_service.data_dir / "postgresql" / "postmaster.pid"
    server = psutil.Process(int(lock_file.read_text().splitlines()[0]))
    if psutil.LINUX:  # Its other files are where nobody cleans up.
        assert [region.path for region in server.memory_maps() if Path(region.path).parent.name == "shm"] == []
    lock_file.unlink()
    until(lambda: not server.is_running(), within_s=_NOTICES_WITHIN_S)
    until(lambda: _send(own_service) == 201, within_s=_HEALS_WITHIN_S)
