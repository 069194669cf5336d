"""While PostgreSQL's disk is full, `/readyz` and `points status` say so and sends are 503; with room, all goes on."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from app.cli.status import status
from app.local import ports
from tests.crash.volume import Volume
from tests.deadline import until
from tests.integration import books
from tests.operations.server import Server
from tests.ports import free_port
from tests.service.deployment import deployment, is_ready

pytestmark = pytest.mark.usefixtures("broker")

_FULL = {"postgresql": ["PostgreSQL's disk is full."]}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Volume]:
    volume = Volume(tmp_path / "disk", size_mb=128)
    volume.mount()
    if not volume.is_mounted:
        pytest.skip("this needs a file system of its own, and this user may not mount one")
    yield volume
    volume.unmount()


@pytest.fixture
def server(disk: Volume, tmp_path: Path) -> Server:
    """Make a server whose tables lie on the disk, and its log of changes elsewhere."""
    made = Server.migrated(disk.path / "data")
    log = made.cluster / "pg_wal"
    subprocess.run(["/bin/cp", "-a", str(log), str(tmp_path)], check=True)
    shutil.rmtree(log)
    log.symlink_to(tmp_path / "pg_wal")
    return made


def test_while_the_disk_of_the_tables_is_full_it_is_named_and_nothing_is_accepted(
    server: Server, disk: Volume, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.running(monkeypatch), deployment(tmp_path / "parts") as parts:
        parts.worker("worker1")
        web = parts.web(port := free_port())
        key = books.make_live_key(books.make_organization(20_000))
        # More than fits the pages that its tables have.
        body = {"recipients": [f"somebody{number}@example.com" for number in range(10_000)], "amount": 1}
        once, url = {"Idempotency-Key": "once"}, f"http://{ports.HOST}:{port}"
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
            with disk.full():
                unready = client.get("/readyz")
                assert (unready.status_code, unready.json()["errors"]) == (503, _FULL)
                assert parts.points("status")["down"][0].startswith("PostgreSQL: its disk is full. Read on in ")
                refused = client.post("/v1/points/send", json=body, headers=once)
                assert (refused.status_code, list(refused.json()["errors"])) == (503, ["service"])
                assert "Retry-After" in refused.headers
                assert client.get("/v1/organization").json()["data"]["balance"] == 20_000
            until(lambda: is_ready(port), "with room it is ready, without a restart")
            assert client.post("/v1/points/send", json=body, headers=once).status_code in (201, 202)
            until(lambda: client.get("/v1/organization").json()["data"]["balance"] == 10_000, "it is paid once")
        assert "Traceback" not in parts.log(web)
        assert parts.deaths() == {}


def test_of_a_server_that_ended_status_names_the_full_disk_of_the_data_directory(
    disk: Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server.migrated(disk.path / "data")
    server.postgresql.prepare()
    monkeypatch.delenv("DATABASE_URL")

    def named() -> bool:
        done = CliRunner().invoke(status, ["--json", "--data-dir", str(server.data.path)])
        monkeypatch.delenv("DATABASE_URL")
        [first, *_] = json.loads(done.stdout)["down"]
        return f"PostgreSQL: the disk of {server.data.path} is full (" in first

    with disk.full():
        assert named()
    assert not named()
