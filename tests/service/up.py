"""The service as its users meet it: run by `points up`, called over HTTP, operated with the `points` commands."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
import pytest

from tests.deadline import TIMEOUT_S, comes_true, until
from tests.ports import HOST, free_port
from tests.service.commands import give
from tests.service.template import POINTS, copy_to

STOPPED_IN_S = 60

# What somebody has set for a service of theirs must not move this one.
_SETTINGS = ("POINTS_", "DATABASE_", "REDIS_", "FLOWER_", "GUNICORN_", "WEB_")

# No test is a flood, but some make many calls with one key; webhooks may lead to receivers of the tests.
# The port is what Kubernetes sets where a service is named flower.
_OF_TESTS = {
    "POINTS_RATE_LIMIT": "off",
    "POINTS_WEBHOOK_ALLOW": "127.0.0.0/8",
    "FLOWER_PORT": "tcp://10.0.0.7:5555",
}

# What the command line of each part holds, and what it does not.
_PARTS = {
    "web": (("gunicorn",), ()),
    "worker": (("celery",), ("beat", "flower", "deliveries")),
    "upkeep": (("worker.upkeep",), ()),
    "deliveries": (("celery", "deliveries"), ()),
    "beat": (("celery", "beat"), ()),
    "flower": (("celery", "flower"), ()),
    "postgresql": (("postgres",), ()),
    "redis": (("valkey",), ()),
}


class Service:
    """A service in a process of its own, with a data directory and ports of its own. `folder` is where it runs."""

    def __init__(self, data_dir: Path, **settings: str) -> None:
        self.data_dir = data_dir
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
        self.environment = {**inherited, **_OF_TESTS, **settings}
        self.workers = 1
        self.process: subprocess.Popen[Any] | None = None
        self.folder: Path | None = None
        self._said = data_dir.with_name(f"{data_dir.name}.output")
        self._read_to = 0
        self._lines: list[str] = []
        # A connection for each call, so that none is used that a process which has ended had kept. If none may be kept,
        # a thread may close the one that another has just been given (httpcore's issue 1110).
        self._client = httpx.Client(headers={"Connection": "close"}, timeout=60, trust_env=False)
        self.listen_at(free_port(), free_port())

    def listen_at(self, port: int, flower_port: int) -> None:
        """Choose its ports, or those of the service that another process of the tests has started here."""
        self.port, self.flower_port = port, flower_port
        self.url = f"http://{HOST}:{port}"
        self._client.base_url = httpx.URL(self.url)

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        """Run it, and end it as `end` does."""
        try:
            self.start()
            yield self
            self.end()
        finally:
            self.close()

    def end(self) -> None:
        """End it: the books balance, and it stops in good order and leaves no process behind."""
        assert self.json("audit")["balanced"] is True
        everything = self.tree()
        assert self.stop() in (0, None), "\n".join(self.output[-50:])
        assert self.output[-1] == "Everything is stopped."
        assert [one for one in everything if _is_alive(one)] == []

    @property
    def up(self) -> list[str]:
        """The command that starts it."""
        return self.words("up", "--port", str(self.port), "--flower-port", str(self.flower_port))

    def start(self, *, is_first: bool = False) -> None:
        """Run `points up` and wait until it says that it runs; `is_first` lets it make its database itself."""
        if not (self.data_dir.exists() or is_first or "DATABASE_URL" in self.environment):
            copy_to(self.data_dir)
        said_before = len(self.output)
        with self._said.open("ab") as said:
            process = self.process = subprocess.Popen(
                [*self.up, "--workers", str(self.workers)],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        threading.Thread(target=process.wait, daemon=True).start()  # Whoever ends it, it has ended.

        def runs_or_has_ended() -> bool:
            runs = any("Ctrl-C stops everything" in line for line in self.output[said_before:])
            return runs or process.poll() is not None

        if not comes_true(runs_or_has_ended, within_s=TIMEOUT_S, every_s=0.05) or process.poll() is not None:
            self.close()
            pytest.fail("`points up` did not come up:\n" + "\n".join(self.output))

    @property
    def output(self) -> list[str]:
        """What it has said so far, line by line; whoever clears it sees what comes then."""
        if self._said.exists():
            with self._said.open("rb") as said:
                said.seek(self._read_to)
                whole, _, _ = said.read().rpartition(b"\n")
            if whole:
                self._read_to += len(whole) + 1
                self._lines += [line.rstrip() for line in whole.decode(errors="replace").split("\n")]
        return self._lines

    @property
    def pid(self) -> int | None:
        """The number of `points up` while it runs, whoever has started it."""
        if self.process is not None and self.process.poll() is None:
            return self.process.pid
        with contextlib.suppress(FileNotFoundError, KeyError, psutil.NoSuchProcess):
            found = psutil.Process(json.loads((self.data_dir / "running.json").read_text())["pid"])
            return found.pid if _is_alive(found) else None
        return None

    def stop(self, number: signal.Signals = signal.SIGINT) -> int | None:
        """Ask it to stop, as Ctrl-C does, and return its exit status; of another's process it cannot be known."""
        pid = self.pid
        if self.process is not None and pid in (self.process.pid, None):
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)
            return self.process.wait(STOPPED_IN_S)
        if pid is not None:
            process = psutil.Process(pid)
            process.send_signal(number)
            until(lambda: not _is_alive(process), "it has stopped", within_s=STOPPED_IN_S)
        return None

    def close(self) -> None:
        """Leave nothing of it running."""
        if self.pid is not None:
            self.stop(signal.SIGTERM)
        self._client.close()

    def tree(self) -> list[psutil.Process]:
        """Return `points up` and all that it has started, also in sessions of their own, the parent first."""
        assert self.pid is not None
        parent = psutil.Process(self.pid)
        return [parent, *parent.children(recursive=True)]

    def processes(self, part: str) -> list[psutil.Process]:
        """Return the processes of a part that are alive."""
        if part == "postgresql" and "DATABASE_URL" in self.environment:
            pytest.skip("this PostgreSQL is not run by `points up`, so nothing is done to its processes")
        words, others = _PARTS[part]
        beside = "worker.upkeep" if part == "worker" else None
        found = []
        for process in self.tree()[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                line = " ".join([process.name(), *process.cmdline()])
                is_of_part = all(word in line for word in words) and not any(word in line for word in others)
                if is_of_part or (beside is not None and beside in line):
                    found.append(process)
        return found

    def kill(self, part: str | None = None) -> None:
        """End every process of a part at once, or all there are, as a machine does that loses its power."""
        processes = self.tree() if part is None else self.processes(part)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=STOPPED_IN_S)

    @contextlib.contextmanager
    def paused(self, part: str) -> Iterator[None]:
        """Stop every process of a part without ending it: who speaks to it gets no answer."""
        processes = self.processes(part)
        assert processes, f"no {part} runs"
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()

    def words(self, *arguments: str) -> list[str]:
        """Return a `points` command about this service."""
        return [POINTS, *arguments, "--data-dir", str(self.data_dir)]

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Give a `points` command with just these arguments."""
        return give(POINTS, arguments, environment=self.environment | environment, stdin=stdin)

    def command(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Give a command about this service, and require its exit status."""
        done = self.run(*arguments, "--data-dir", str(self.data_dir))
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def json(self, *arguments: str, status: int = 0) -> Any:
        """Give a command with `--json` and return the one document on its standard output."""
        done = self.command(*arguments, "--json", status=status)
        assert status or done.stderr == "", done.stderr
        return json.loads(done.stdout)

    @cached_property
    def platform_key(self) -> dict[str, Any]:
        """A key of the platform, made when it is first asked for: a call takes a hundredth of a command's time."""
        made: dict[str, Any] = self.json("platform-keys", "create", "Tests")
        return made

    def platform(self, method: str, path: str, **body: Any) -> Any:
        """Make a call of the platform that succeeds, and return its `data`."""
        answer = self.call(
            method, f"/v1/platform/{path}", key=self.platform_key["key"], **({"json": body} if body else {})
        )
        assert answer.is_success, answer.text
        return answer.json()["data"] if answer.content else None

    def register(self, email: str, first_name: str = "Ada", last_name: str = "Lovelace") -> dict[str, Any]:
        """Register a user and return it."""
        user: dict[str, Any] = self.platform("POST", "users", email=email, first_name=first_name, last_name=last_name)
        return user

    def points_of(self, email: str) -> int:
        """Return the balance of the user with this address."""
        found = self.call("GET", "/v1/platform/users", key=self.platform_key["key"], params={"email": email})
        return int(found.json()["data"]["users"][0]["balance"])

    def request(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Make a call with nothing but what is given."""
        return self._client.request(method, path, **request)

    def call(self, method: str, path: str, *, key: str | None = None, **request: Any) -> httpx.Response:
        """Make one call, with `key` as the caller's."""
        headers = {"Accept": "application/json", **request.pop("headers", {})}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return self.request(method, path, headers=headers, **request)


def _is_alive(process: psutil.Process) -> bool:
    """Tell whether a process runs; one that nobody has asked for its status yet does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
