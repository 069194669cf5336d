"""The units of systemd: what they run is what the Procfile runs, and a restart behind a socket fails no call."""

import configparser
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.deployment.files import ROOT
from tests.unit.deployment.lines import words_of_line

_UNITS = ROOT / "deploy" / "systemd"
_BIN = "/opt/points/bin/"


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
    for unit in _UNITS.iterdir():  # With programs that are there.
        (tmp_path / unit.name).write_text(unit.read_text().replace(_BIN, f"{Path(sys.executable).parent}/"))
    command = ["systemd-analyze", "verify", "--man=no", *map(str, tmp_path.iterdir())]
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
