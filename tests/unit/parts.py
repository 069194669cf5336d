"""Tiny parts for a supervisor to look after: programs of a few lines, and what has become of them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from app.local.supervisor import Part, Supervisor
from tests.deadline import until

_BEGIN = """
import os, signal, subprocess, sys, time
folder, name = sys.argv[1:]
def note(line):
    with open(os.path.join(folder, "notes"), "a") as notes:
        notes.write(line + "\\n")
"""
# The note comes last: who reads it knows that the signal is taken care of from here on.
_WAIT = """
note("ready " + name)
time.sleep(600)
"""

STAYS = _BEGIN + _WAIT
SAYS_GOODBYE = (
    _BEGIN
    + """
def goodbye(number, _):
    note(f"by {signal.Signals(number).name}")
    note("end " + name)
    os._exit(0)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, goodbye)
"""
    + _WAIT
)
IGNORES_THE_SIGNAL = _BEGIN + "signal.signal(signal.SIGTERM, signal.SIG_IGN)" + _WAIT
# What it starts inherits that the signal is ignored, and goes on when it is gone.
_START_A_CHILD = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-Sc", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
note(f"child {child.pid}")
"""
HAS_A_CHILD = _BEGIN + _START_A_CHILD + _WAIT
DIES_AND_LEAVES_A_CHILD = _BEGIN + _START_A_CHILD + "os._exit(0)"


def part(folder: Path, code: str, *, name: str = "part", **settings: Any) -> Part:
    """Make a part that runs `code` with the bare interpreter, which starts in a few milliseconds."""
    return Part(name=name, command=[sys.executable, "-Sc", code, str(folder), name], **settings)


def notes(folder: Path, word: str) -> list[str]:
    """Return what the parts of a folder have noted under a word, oldest first."""
    file = folder / "notes"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.removeprefix(word).strip() for line in lines if line.startswith(f"{word} ")]


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended; one that nobody has asked for its status yet has."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def start(supervisor: Supervisor, folder: Path, *started: Part) -> None:
    """Start parts and wait until each is ready for a signal."""
    for one in started:
        supervisor.start(one)
        until(lambda name=one.name: name in notes(folder, "ready"), f"{one.name} is ready")


def process_of(one: Part) -> subprocess.Popen[bytes]:
    """Return the process of a part that has been started."""
    assert one.process is not None
    return one.process
