"""`points` commands without the second that each takes to import its libraries.

`python -m tests.service.commands` has imported them and forks for each command, which imports the service itself anew.
So a command reads its environment, works and ends as `points` does.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from tests.deadline import TIMEOUT_S
from tests.service.template import POINTS

# What most commands import, except what reads the environment then.
_LIBRARIES = (
    *("alembic.command", "cryptography.fernet", "email_validator", "fractions", "httpx", "kombu.message", "orjson"),
    *("psutil", "psycopg", "pydantic", "pydantic_settings", "redis", "rich.progress", "rich.table"),
    *("sqlalchemy.dialects.postgresql", "structlog", "yaml"),
)
# Python, or a library, reads these before the command is its own.
_READ_EARLY = ("PYTHON", "LC_", "LANG", "TZ")
_HEADER = 8


def give(
    program: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    stdin: str = "",
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Give a `points` command in a folder and return what it said and its exit status, as `subprocess.run` does.

    Raises:
        TimeoutExpired: it has not ended in two minutes; it is killed.
    """
    command = [program, *arguments]
    if program != POINTS or any(environment.get(name) != os.environ.get(name) for name in _early(environment)):
        return subprocess.run(
            command,
            env=environment,
            input=stdin,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    with contextlib.ExitStack() as opened:
        files: list[IO[str]] = [opened.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3)]
        files[0].write(stdin)
        files[0].seek(0)
        told, tells = os.pipe()
        reader = opened.enter_context(os.fdopen(told))
        try:
            _ask({"argv": command, "environment": dict(environment), "folder": str(folder or Path.cwd())}, files, tells)
        finally:
            os.close(tells)
        pid = int(reader.readline())
        if not select.select([reader], [], [], TIMEOUT_S)[0]:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(command, TIMEOUT_S)
        status = int(reader.readline())
        for file in files[1:]:
            file.seek(0)
        return subprocess.CompletedProcess(command, status, files[1].read(), files[2].read())


def _early(environment: Mapping[str, str]) -> set[str]:
    return {name for name in (*environment, *os.environ) if name.startswith(_READ_EARLY)}


_one_at_a_time = threading.Lock()


def _ask(what: dict[str, Any], files: Sequence[IO[str]], tells: int) -> None:
    asked = json.dumps(what).encode()
    with _one_at_a_time:
        server = _server()
        socket.send_fds(server, [len(asked).to_bytes(_HEADER)], [*(file.fileno() for file in files), tells])
        server.sendall(asked)


@cache
def _server() -> socket.socket:
    """Start the process that forks; it ends when this one does."""
    near, far = socket.socketpair()
    with far:
        process = subprocess.Popen([sys.executable, "-m", __name__], stdin=far.fileno(), start_new_session=True)
    threading.Thread(target=process.wait, daemon=True).start()
    return near


def _serve(asking: socket.socket) -> list[str] | None:
    """Fork for each command. Return in the command's own process, with its words; and with None when nobody asks."""
    while True:
        header, lent, _, _ = socket.recv_fds(asking, _HEADER, 4)
        if not header:
            return None
        what = json.loads(asking.recv(int.from_bytes(header), socket.MSG_WAITALL))
        if os.fork() == 0:
            return _become(what, asking, lent)
        for number in lent:
            os.close(number)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _become(what: dict[str, Any], asking: socket.socket, lent: list[int]) -> list[str]:
    """Fork once more: this process tells how the command ends."""
    tells = lent.pop()
    if pid := os.fork():
        os.write(tells, f"{pid}\n".encode())
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(tells, f"{status}\n".encode())
        os._exit(0)
    asking.close()
    os.close(tells)
    for number, its_own in enumerate(lent):
        os.dup2(its_own, number)
        os.close(its_own)
    os.environ.clear()
    os.environ.update(what["environment"])
    os.chdir(what["folder"])
    sys.path[0] = str(Path(POINTS).parent)
    words: list[str] = what["argv"]
    return words


if __name__ == "__main__":
    for library in _LIBRARIES:
        import_module(library)
    gc.freeze()  # Else each command, when it ends, looks through all that is imported.
    words = _serve(socket.socket(fileno=0))
    if words is not None:
        sys.argv = words
        from app.cli import main  # Not before: it is imported as a command imports it.

        main()
