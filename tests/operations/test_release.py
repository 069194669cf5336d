"""A release: made, installed in an environment of its own without the checkout, and run there."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.local import ports
from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.local.valkey import Valkey
from tests.deadline import until
from tests.ports import HOST, free_port
from tests.service.deployment import Parts
from tests.service.release import VERSION, ran, release, succeeds
from tests.service.up import Service
from tests.unit.deployment.files import SHELL, procfile

pytestmark = pytest.mark.long

# Imports each command and each group's own, and writes the help of each.
_ALL_HELP = """
import click
from app.cli import points

def show(command, parent, name):
    context = click.Context(command, parent=parent, info_name=name)
    print(command.get_help(context).splitlines()[0])
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            show(command.get_command(context, below), context, below)

show(points, None, "points")
"""


def test_a_release_that_may_not_be_made_changes_nothing_and_says_why(tree: Path) -> None:
    before = succeeds("git", "rev-parse", "HEAD", cwd=tree)
    assert "VERSION must be three numbers" in release(tree, "1.0").stderr
    (tree / "left").touch()
    assert "The tree is not clean" in release(tree).stderr
    (tree / "left").unlink()
    assert (succeeds("git", "rev-parse", "HEAD", cwd=tree), (tree / "dist").exists()) == (before, False)


def test_a_release_is_dated_tagged_and_whole(tree: Path, released: Path) -> None:
    assert succeeds("git", "describe", "--exact-match", "--dirty", cwd=tree) == f"v{VERSION}\n"
    assert f"## {VERSION} – 20" in (tree / "CHANGELOG.md").read_text()
    checked = succeeds("sha256sum", "--check", "SHA256SUMS", cwd=released).splitlines()
    kept = {file.name for file in released.iterdir()} - {"SHA256SUMS"}
    assert {line.removesuffix(": OK") for line in checked} == kept
    bill = json.loads((released / "sbom.cdx.json").read_text())
    pinned = [line.split("==")[0] for line in (tree / "requirements.lock").read_text().splitlines() if "==" in line]
    assert sorted(part["name"] for part in bill["components"]) == sorted(pinned)
    assert "exists: a version is released once" in release(tree).stderr


@pytest.fixture(scope="module")
def programs(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the release as the page says, and return the folder of its programs; it is all that knows the service."""
    folder = tmp_path_factory.mktemp("installed")
    succeeds(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    pip: list[str | Path] = [folder / "venv/bin/pip", "install", "--quiet", "--require-hashes"]
    succeeds(*pip, "--requirement", "requirements.txt", cwd=released)
    return folder / "venv" / "bin"


def test_every_file_of_the_packages_is_in_the_installed_ones(tree: Path, programs: Path) -> None:
    [installed] = (programs.parent / "lib").glob("python*/site-packages")
    roots = [tree / name for name in ("app", "worker", "migrations", "client/src/points_client")]
    files = [file.relative_to(root.parent) for root in roots for file in root.rglob("*") if file.is_file()]
    assert [str(file) for file in files if not (installed / file).exists()] == []


@pytest.fixture
def service(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Run `points up` of what was installed, with its embedded servers, from an empty folder."""
    monkeypatch.setattr("tests.service.up.POINTS", str(programs / "points"))
    service = Service(tmp_path / "data", PATH=f"{programs}:{os.environ['PATH']}")
    service.environment.pop("PYTHONPATH", None)
    service.folder = tmp_path / "empty"
    service.folder.mkdir()
    service.start(is_first=True)
    try:
        yield service
        service.end()
    finally:
        service.close()


def test_what_was_installed_runs_whole(service: Service, programs: Path, tmp_path: Path) -> None:
    assert service.folder is not None
    _all_tell_the_version(service, programs)
    commands = succeeds(programs / "python", "-c", _ALL_HELP, cwd=service.folder)
    assert {"Usage: points send", "Usage: points keys create"} <= {
        " ".join(line.split()[:4]).removesuffix(" [OPTIONS]") for line in commands.splitlines()
    }
    _points_are_sent(service, tmp_path)
    sign_in = service.request("GET", "/console", follow_redirects=True)
    [style] = [word for word in sign_in.text.split('"') if word.endswith(".css") or ".css?" in word]
    assert (sign_in.status_code, service.request("GET", style).status_code) == (200, 200)
    assert service.request("GET", "/docs").status_code == 200
    _lines_of_the_procfile_run(service, programs, tmp_path)


def _all_tell_the_version(service: Service, programs: Path) -> None:
    asked = "import points_client; print(points_client.__version__)"
    assert service.folder is not None
    assert {
        succeeds(programs / "points", "--version", cwd=service.folder).split()[-1],
        succeeds(programs / "python", "-c", asked, cwd=service.folder).strip(),
        service.json("status")["version"],
        service.request("GET", "/healthz").json()["data"]["version"],
        service.request("GET", "/openapi.json").json()["info"]["version"],
    } == {VERSION}


def _points_are_sent(service: Service, folder: Path) -> None:
    organization = service.json("organizations", "create", "Shop", "--balance", "100")
    key = service.json("keys", "create", str(organization["id"]))["key"]
    file = folder / "list.csv"
    file.write_text("email,amount\nada@example.com,30\n")
    sent = service.run("send", str(file), "--yes", "--url", service.url, POINTS_KEY=key)
    assert sent.returncode == 0, sent.stdout + sent.stderr
    assert service.call("GET", "/v1/organization", key=key).json()["data"]["balance"] == 70


def _lines_of_the_procfile_run(service: Service, programs: Path, folder: Path) -> None:
    """Start each line beside the parts of `points up`, under names of its own."""
    port, flower = free_port(), free_port()
    names = {"WORKER_NAME": "worker9", "DELIVERIES_NAME": "deliveries9", "FLOWER_BASIC_AUTH": "a:b"}
    data = DataDir(service.data_dir)
    urls = {"DATABASE_URL": PostgreSQL(data).url(), "REDIS_URL": Valkey(data).url()}
    environment = service.environment | names | urls | {"PORT": str(port), "FLOWER_PORT": str(flower)}
    lines = procfile()
    succeeds("sh", "-c", lines.pop("release"), cwd=folder, **environment)
    parts = Parts(folder / "logs", environment | {"WEB_ADDRESS": HOST})
    try:
        for name, line in lines.items():
            parts.add(name, [SHELL, "-c", f"cd {service.folder} && {line}"])
        until(lambda: _all_run(port, flower, programs, environment, folder), "all run")
        assert parts.deaths() == {}, [parts.log(parts.part(name)) for name in parts.deaths()]
    finally:
        parts.supervisor.stop()


def _all_run(port: int, flower: int, programs: Path, environment: dict[str, str], folder: Path) -> bool:
    if not (ports.answers(f"http://{HOST}:{port}/readyz") and ports.answers(f"http://{HOST}:{flower}/healthcheck")):
        return False
    ping: list[str | Path] = [programs / "celery", "--app", "worker", "inspect", "ping", "--json"]
    answers: dict[str, Any] = json.loads(ran(*ping, cwd=folder, **environment).stdout or "{}")
    return {"worker9", "deliveries9"} <= {name.split("@")[0] for name in answers}
