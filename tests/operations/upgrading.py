"""A release that is installed, the next one, and a deployment whose parts are replaced by those of another release."""

import json
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet

from migrations import newest
from tests.ports import free_port
from tests.service import release
from tests.service.deployment import Deployment
from tests.service.parts import Part
from tests.unit.deployment.files import SHELL, procfile

NEXT = "7.9.0"
_MIGRATION = '''
from alembic import op

revision = "9999"
down_revision = "{before}"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE batches ADD COLUMN campaign text COLLATE "C";
        CREATE TABLE campaigns (id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_campaigns PRIMARY KEY);
    """)
'''
_SETTINGS = {
    "POINTS_ACCESS_LOG": "true",
    "POINTS_PUBLIC_URL": "https://points.example.com",
    "POINTS_WEBHOOK_ALLOW": "127.0.0.0/8",
}


def installed(folder: Path, package: Path) -> Path:
    """Install a package in an environment of its own, and return its programs. What it needs is that of the tests."""
    python = folder / "bin" / "python"
    release.succeeds(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    release.succeeds(*pip, package, cwd=folder.parent)
    [packages] = (folder / "lib").glob("python*/site-packages")
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"))
    for name in ("celery", "gunicorn"):
        program = folder / "bin" / name
        program.write_text(f'#!{SHELL}\nexec {python} -m {name} "$@"\n')
        program.chmod(0o755)
    return folder / "bin"


def next_wheel(tree: Path, folder: Path) -> Path:
    """Build the next release: the tree with a migration that expands the tables."""
    copy = shutil.copytree(tree, folder / "next", ignore=shutil.ignore_patterns(".git", "dist"))
    (copy / "migrations/versions/9999_campaigns.py").write_text(_MIGRATION.format(before=newest()))
    version = copy / "client/src/points_client/version.py"
    version.write_text(re.sub(r'(?<=__version__ = ")[^"]*', NEXT, version.read_text()))
    build: list[str | Path] = ["-m", "build", "--no-isolation", "--wheel", "--outdir", folder / "wheels", copy]
    release.succeeds(sys.executable, *build, cwd=folder)
    return wheel(folder / "wheels")


def wheel(folder: Path) -> Path:
    [wheel] = folder.glob("points_issuing_service-*.whl")
    return wheel


class Upgraded(Deployment):
    """A deployment whose parts are of the release of the moment. It runs in a folder from which nothing is imported."""

    def __init__(self, folder: Path, programs: Path) -> None:
        super().__init__(folder / "logs", **_SETTINGS, POINTS_SECRETS_KEY=Fernet.generate_key().decode())
        self.environment.pop("PYTHONPATH", None)
        self._folder = folder / "empty"
        self._folder.mkdir()
        self.port = free_port()
        self._turn = 0
        self.running: dict[str, Part] = {}
        self.install(programs)

    def install(self, programs: Path) -> None:
        """Start what is started from now on from another release."""
        self.programs = programs
        self.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        self._turn += 1

    def command(self, *words: str) -> Any:
        """Return the document that a command of the release prints; it succeeds."""
        points: list[str | Path] = [self.programs / "points", *words, "--json"]
        return json.loads(release.succeeds(*points, cwd=self._folder, **self.environment) or "null")

    def _start(self, line: str, name: str, **environment: str) -> Part:
        command = f"cd {self._folder} && {procfile()[line]}"
        return self.add(name, [SHELL, "-c", command], **environment)

    def replace(self, line: str, told: Callable[[int], None]) -> None:
        """Start a part of the release, and end the one before it; `told` leads callers to a web process."""
        name, before = f"{line}{self._turn}", self.running.get(line)
        if line == "web":
            self.port = free_port()
            self.running[line] = self.web(self.port)
            told(self.port)
        else:
            self.running[line] = self._start(line, name, WORKER_NAME=name, DELIVERIES_NAME=name)
        if before is not None:
            self.stop_gracefully(before)

    def answered(self) -> list[dict[str, Any]]:
        """Return the log line of each answer of every web process."""
        texts = [self.log(part) for name, part in self.supervisor.parts.items() if name.startswith("web")]
        lines = [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == "request"]
