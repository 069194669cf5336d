"""The units of systemd: what they run is what the Procfile runs, and a restart behind a socket fails no call."""

import configparser
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.local import ports
from tests.deadline import TIMEOUT_S, comes_true
from tests.operations.load import issued_exactly, load
from tests.service.deployment import STOPPED_IN_S, deployment, is_ready
from tests.unit.deployment.files import ROOT
from tests.unit.deployment.lines import words_of_line

_UNITS = ROOT / "deploy" / "systemd"
_BIN = "/opt/points/bin/"

# A program may not know its own number beforehand, so it is told just before it becomes itself.
_ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execvp(sys.argv[2], sys.argv[2:])
"""


def _unit(name: str) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",), delimiters=("=",))
    unit.read(_UNITS / name)
    return unit


def _words(name: str) -> list[str]:
    """Return the command of a unit for its instance 1, as systemd expands it."""
    line = _unit(name)["Service"]["ExecStart"].replace("%%", "%").replace("%i", "1")
    assert line.startswith(_BIN)
    return shlex.split(line.removeprefix(_BIN))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_every_line_of_the_units(tmp_path: Path) -> None:
    shutil.copytree(_UNITS, tmp_path, dirs_exist_ok=True)
    units = [file for file in tmp_path.iterdir() if file.is_file()]
    for unit in units:  # With programs that are there.
        unit.write_text(unit.read_text().replace(_BIN, f"{Path(sys.executable).parent}/"))
    command = ["systemd-analyze", "verify", "--man=no", *map(str, units)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("unit", "line"),
    [
        ("points-worker@.service", "worker"),
        ("points-deliveries@.service", "deliveries"),
        ("points-beat.service", "beat"),
        ("points-flower.service", "flower"),
    ],
)
def test_a_unit_runs_what_the_procfile_runs(unit: str, line: str, tmp_path: Path) -> None:
    names = {"WORKER_NAME": "worker1", "DELIVERIES_NAME": "deliveries1", "FLOWER_BASIC_AUTH": "a:b"}
    # The stand-in for Celery in the tests of the Procfile leaves out the name of the program.
    assert _words(unit)[1:] == words_of_line(line, tmp_path, **names)[1:]


def test_web_runs_what_the_procfile_runs_and_gets_its_address_from_the_socket(tmp_path: Path) -> None:
    line = words_of_line("web", tmp_path)
    assert _words("points-web.service") == line[: line.index("--bind")]
    assert _unit("points-web.service")["Unit"]["Requires"] == "points-web.socket"
    assert _unit("points-web.socket")["Socket"]["ListenStream"] == "127.0.0.1:8000"


@pytest.mark.long
@pytest.mark.usefixtures("broker", "database")
def test_web_is_restarted_behind_its_socket_under_load_and_no_call_fails(tmp_path: Path) -> None:
    with deployment(tmp_path) as parts, socket.create_server((ports.HOST, 0), backlog=1_024) as listening:
        port = listening.getsockname()[1]
        parts.worker("worker1")
        with _activated(listening, tmp_path) as first:
            assert comes_true(lambda: is_ready(port), within_s=TIMEOUT_S)
            with load(port) as callers:
                first.send_signal(signal.SIGTERM)
                assert first.wait(STOPPED_IN_S) == 0
                with _activated(listening, tmp_path):
                    callers.goes_on(calls=50)
                    callers.stop()
        issued_exactly(callers)


@contextmanager
def _activated(listening: socket.socket, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run web as systemd does, which passes its socket as file 3 and says so in the environment."""
    command = [sys.executable, "-c", _ACTIVATE, str(listening.fileno()), *_words("points-web.service")]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "POINTS_RATE_LIMIT": "off",
        "WEB_CONCURRENCY": "1",
    }
    with (folder / "web.log").open("ab") as log:
        web = subprocess.Popen(
            command, env=environment, pass_fds=(listening.fileno(),), stdout=log, stderr=log, cwd=ROOT
        )
    try:
        yield web
    finally:
        if web.poll() is None:
            web.terminate()
        web.wait(STOPPED_IN_S)
