"""The parts of a service as processes of a test's own: ended by signals, and started again when they die."""

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.local import ports
from tests.deadline import TIMEOUT_S, comes_true
from tests.service.commands import give
from tests.service.parts import Part, Supervisor
from tests.service.template import POINTS
from tests.unit.deployment.files import SHELL, procfile

STOPPED_IN_S = 60


class Parts:
    """Some processes below one supervisor, with an environment that they share and a log each."""

    def __init__(self, logs: Path, environment: dict[str, str]) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.logs = logs
        self.environment = environment
        self.supervisor = Supervisor()

    def part(self, name: str) -> Part:
        return self.supervisor.parts[name]

    def add(self, name: str, command: Sequence[str], **environment: str) -> Part:
        """Start a part, and keep it running from now on."""
        return self.supervisor.add(Part(name, command, self.environment | environment, self.logs / f"{name}.log"))

    def restart(self, name: str, command: Sequence[str], **environment: str) -> None:
        """End a part at once and start it with another command or environment."""
        part = self.part(name)
        part.hold_down(signal.SIGKILL)
        part.command, part.environment = list(command), self.environment | environment
        part.start()

    def log(self, part: Part) -> str:
        """Return what a part has said, for a test that fails."""
        return (self.logs / f"{part.name}.log").read_text()

    def deaths(self) -> dict[str, int]:
        """Return which parts ended without being asked to, and how often."""
        return {name: part.deaths for name, part in self.supervisor.parts.items() if part.deaths}


class Deployment(Parts):
    """Web, workers and beat as an operator runs them: lines of the Procfile, on servers that the environment names."""

    def __init__(self, folder: Path, **environment: str) -> None:
        of_operators = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "POINTS_RATE_LIMIT": "off",
            "WEB_ADDRESS": ports.HOST,
            "WEB_CONCURRENCY": "1",
            "WORKER_CONCURRENCY": "2",
        }
        # The fixtures have put the addresses of their servers there.
        super().__init__(folder, {**os.environ, **of_operators, **environment})

    def web(self, port: int) -> Part:
        """Start a web process and wait until it may be sent calls."""
        web = self._start("web", f"web{port}", PORT=str(port))
        assert comes_true(lambda: is_ready(port), within_s=TIMEOUT_S), self.log(web)
        return web

    def worker(self, name: str) -> Part:
        """Start a worker. It may be sent work before it is ready: that waits in the queue."""
        return self._start("worker", name, WORKER_NAME=name)

    def beat(self) -> Part:
        return self._start("beat", "beat")

    def flower(self, port: int, **environment: str) -> Part:
        """Start Flower on the loopback address, with the password `hush` of the user `points`."""
        login = {"FLOWER_PORT": str(port), "FLOWER_BASIC_AUTH": "points:hush"}
        return self._start("flower", "flower", **login, **environment)

    def _start(self, line: str, name: str, **environment: str) -> Part:
        return self.add(name, [SHELL, "-c", procfile()[line]], **environment)

    def stop_gracefully(self, part: Part) -> None:
        """Ask a part to finish what it does, as a platform does, and see that it ended well."""
        part.ask_to_end(signal.SIGTERM)
        assert part.wait_for_end(within_s=STOPPED_IN_S) == 0, self.log(part)

    def points(self, *arguments: str) -> Any:
        """Return the document that a command of `points` prints."""
        done = give(POINTS, [*arguments, "--json"], environment=self.environment, folder=self.logs)
        assert done.returncode in ((0, 1) if arguments == ("status",) else (0,)), done.stderr
        return json.loads(done.stdout)


@contextmanager
def deployment(folder: Path, **environment: str) -> Iterator[Deployment]:
    """Give a deployment in which nothing runs yet, and leave no process of it behind."""
    made = Deployment(folder, **environment)
    try:
        yield made
    finally:
        made.supervisor.stop()


def is_ready(port: int) -> bool:
    """Tell what `/readyz` says."""
    try:
        with urllib.request.urlopen(f"http://{ports.HOST}:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
