"""Files of the embedded servers that are damaged or gone: the service heals, and says what it has moved."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.deadline import until
from tests.e2e.conftest import Service

_HEALS_WITHIN_S = 30
# PostgreSQL looks once a minute whether its lock file is there.
_NOTICES_WITHIN_S = 90


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Service]:
    """Start a service of this test's own."""
    service = Service(tmp_path / "data", {})
    try:
        service.start()
        yield service
    finally:
        service.kill()


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


def test_a_valkey_that_cannot_read_its_file_at_the_start_starts_without_it(own_service: Service) -> None:
    for _ in range(2):  # And again, when there is one aside already.
        assert own_service.stop() == 0
        content = _damage(own_service)
        own_service.output.clear()
        own_service.start()
        assert _is_set_aside(own_service, content)
        assert _send(own_service) == 201
    own_service.points("audit")


def test_a_valkey_that_cannot_read_its_file_after_it_died_is_started_without_it(own_service: Service) -> None:
    parts = json.loads((own_service.data_dir / "running.json").read_text())["parts"]
    os.kill(parts["valkey"]["pid"], signal.SIGSTOP)
    content = _damage(own_service)
    os.kill(parts["valkey"]["pid"], signal.SIGKILL)
    until(lambda: _is_set_aside(own_service, content), within_s=_HEALS_WITHIN_S)
    until(lambda: own_service.call("GET", "/readyz").json()["data"]["redis"] == "ok", within_s=_HEALS_WITHIN_S)
    assert _send(own_service) == 201
    own_service.points("audit")


def test_a_valkey_that_is_killed_keeps_what_it_has_on_disk(own_service: Service) -> None:
    parts = json.loads((own_service.data_dir / "running.json").read_text())["parts"]
    os.kill(parts["valkey"]["pid"], signal.SIGKILL)
    until(lambda: any("valkey │ died (signal 9)" in line for line in own_service.output), within_s=_HEALS_WITHIN_S)
    until(lambda: own_service.call("GET", "/readyz").json()["data"]["redis"] == "ok", within_s=_HEALS_WITHIN_S)
    assert not (own_service.data_dir / "valkey" / "appendonlydir.damaged").exists()


def test_a_postgresql_whose_lock_file_is_gone_ends_and_is_started_again(own_service: Service) -> None:
    lock_file = own_service.data_dir / "postgresql" / "postmaster.pid"
    server = psutil.Process(int(lock_file.read_text().splitlines()[0]))
    lock_file.unlink()
    until(lambda: not server.is_running(), within_s=_NOTICES_WITHIN_S)
    until(lambda: _send(own_service) == 201, within_s=_HEALS_WITHIN_S)
    own_service.points("audit")


def test_postgresql_keeps_no_file_where_others_clean_up(own_service: Service) -> None:
    with own_service.connection() as connection:
        assert connection.exec_driver_sql("SHOW dynamic_shared_memory_type").scalar_one() == "mmap"
    folder = own_service.data_dir / "postgresql"
    pid = int((folder / "postmaster.pid").read_text().splitlines()[0])
    mapped = [Path(region.path) for region in psutil.Process(pid).memory_maps()] if psutil.LINUX else []
    assert [path for path in mapped if path.parent.name == "shm"] == []
