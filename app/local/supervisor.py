"""The supervisor behind `points up`: it starts the parts, shows their output, restarts those that die, stops all."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil

from app.errors import Refused
from app.local.datadir import RUNNING_FILE, DataDir

_CHECK_EVERY_S = 0.2
# The delay doubles with each death in a row: 0.5 s, 1 s, 2 s … up to 10 s.
_RESTART_DELAY_S = 0.5
_RESTART_DELAY_MAX_S = 10.0
# After a run of this length, the next death counts as the first.
_STABLE_AFTER_S = 30.0

# A part left by a killed supervisor gets less time to end: nobody waits for its answers.
_LEFTOVER_TIMEOUT_S = 10.0

_READ_BYTES = 65_536
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(kw_only=True)
class Part:
    """One process of the service.

    `stop_signal` asks the part to end cleanly; after `stop_timeout_s` it is killed with its children.
    Lines of its output that contain `hide` are left out. `mend` is called when it ends by its own error, once in a
    series of deaths. It returns a sentence about what it did, or None.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = 40.0
    hide: str | None = None
    mend: Callable[[], str | None] | None = None
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    deaths: int = 0
    is_mended: bool = False
    start_at: float = 0.0


class Supervisor:
    """Keeps the parts of a data directory running until `stop`.

    `show` gets the parts' output: one or more lines, the last without its line end. It must not block, because a part
    blocks when nobody reads its output.
    """

    def __init__(self, datadir: DataDir, show: Callable[[str], object]) -> None:
        self._datadir = datadir
        self._show_text = show
        self._parts: list[Part] = []
        self._readers: list[threading.Thread] = []
        self.is_stopping = False

    def end_leftovers(self) -> None:
        """End the parts that a killed supervisor has left, so that ports and data are free.

        Raises:
            Refused: a part belongs to another user.
        """
        parts = self._datadir.read(RUNNING_FILE).get("parts", {})
        for name, left in reversed(parts.items()):
            try:
                process = psutil.Process(left["pid"])
                if process_identity(process) != left["created"]:
                    continue  # Another process has this number by now.
                process.send_signal(left["stop_signal"])
                with contextlib.suppress(psutil.TimeoutExpired):
                    process.wait(_LEFTOVER_TIMEOUT_S)
                kill_group(left["pid"])
            except psutil.NoSuchProcess:
                continue
            except psutil.AccessDenied:
                raise Refused(
                    f"The {name} that another `points up` has left behind still runs, as process {left['pid']} of"
                    " another user. Start as that user, or end it first."
                ) from None
        (self._datadir.path / RUNNING_FILE).unlink(missing_ok=True)

    def start(self, part: Part) -> None:
        """Start a part, and keep it running."""
        self._parts.append(part)
        self._spawn(part)

    def watch(self, until: Callable[[], bool]) -> None:
        """Restart parts that die, until `until()` is true or a stop is requested."""
        while not self.is_stopping and not until():
            for part in self._parts:
                self._check(part)
            time.sleep(_CHECK_EVERY_S)

    def ask_to_stop(self) -> None:
        """Make `watch` return. Safe in a signal handler; setting an Event is not, since `watch` may hold its lock."""
        self.is_stopping = True

    def stop(self) -> None:
        """Stop every part cleanly, in the reverse order of their starts."""
        self.is_stopping = True
        for part in reversed(self._parts):
            self._end(part)
        for reader in self._readers:
            reader.join(timeout=2)
        (self._datadir.path / RUNNING_FILE).unlink(missing_ok=True)

    def say(self, name: str, *lines: str) -> None:
        """Show lines under a part's name."""
        self._show_text("\n".join(f"{name:>10} │ {line}" for line in lines))

    def _spawn(self, part: Part) -> None:
        # In a new session: Ctrl-C reaches only the supervisor, which stops the parts in order and can kill all
        # that a part has started.
        part.process = subprocess.Popen(
            part.command,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **part.environment},
            # Celery and gunicorn import from the working directory first, where a user may have an app.py.
            cwd=self._datadir.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
        part.started_at = time.monotonic()
        assert part.process.stdout is not None, "its output is a pipe"
        reader = threading.Thread(target=self._show, args=(part, part.process.stdout), daemon=True)
        reader.start()
        self._readers = [thread for thread in self._readers if thread.is_alive()] + [reader]
        self._note_running()

    def _show(self, part: Part, output: IO[bytes]) -> None:
        """Show a part's output, many lines at a time: a busy part writes a thousand lines a second."""
        unfinished = b""
        with output:
            while read := output.read(_READ_BYTES):
                finished, _, unfinished = (unfinished + read).rpartition(b"\n")
                self._show_lines(part, finished)
            self._show_lines(part, unfinished)

    def _show_lines(self, part: Part, output: bytes) -> None:
        lines = [line.rstrip() for line in output.decode(errors="replace").split("\n")]
        if visible := [line for line in lines if line and (part.hide is None or part.hide not in line)]:
            self.say(part.name, *visible)

    def _check(self, part: Part) -> None:
        now = time.monotonic()
        if part.process is None:
            if now >= part.start_at:
                try:
                    self._spawn(part)
                except OSError as error:  # Too many processes, or too little memory.
                    self._note_death(part, f"cannot be started ({error.strerror})")
            return
        status = part.process.poll()
        if status is None:
            return
        if now - part.started_at > _STABLE_AFTER_S:
            part.deaths, part.is_mended = 0, False
        self._note_death(part, f"died ({f'signal {-status}' if status < 0 else f'exit status {status}'})")
        kill_group(part.process.pid)
        part.process = None
        if part.mend is not None and status > 0 and not part.is_mended and (done := part.mend()):
            part.is_mended = True
            self.say(part.name, done)

    def _note_death(self, part: Part, how: str) -> None:
        part.deaths += 1
        delay = min(_RESTART_DELAY_S * 2 ** (part.deaths - 1), _RESTART_DELAY_MAX_S)
        part.start_at = time.monotonic() + delay
        self.say(part.name, f"{how}; starting it again in {delay:g} s")

    def _end(self, part: Part) -> None:
        if part.process is None:
            return
        if part.process.poll() is None:
            part.process.send_signal(part.stop_signal)
            try:
                part.process.wait(part.stop_timeout_s)
            except subprocess.TimeoutExpired:
                self.say(part.name, f"did not stop in {part.stop_timeout_s:g} s and is killed")
        kill_group(part.process.pid)
        part.process.wait()

    def _note_running(self) -> None:
        parts = {}
        for part in self._parts:
            if part.process is not None and part.process.poll() is None:
                created = process_identity(psutil.Process(part.process.pid))
                parts[part.name] = {"pid": part.process.pid, "created": created, "stop_signal": part.stop_signal}
        created = process_identity(psutil.Process())
        kept = [part.name for part in self._parts]
        self._datadir.update(RUNNING_FILE, pid=os.getpid(), created=created, kept=kept, parts=parts)


def is_kept_running(datadir: DataDir, name: str) -> bool:
    """Tell whether a supervisor of this folder is running and restarts this part when it dies."""
    running = datadir.read(RUNNING_FILE)
    try:
        is_at_work = process_identity(psutil.Process(running["pid"])) == running["created"]
    except (KeyError, psutil.Error):
        return False
    return is_at_work and name in running["kept"]


def process_identity(process: psutil.Process) -> str:
    """Return a text that no other process with the same id ever has on this machine.

    It is the boot id and the seconds from boot to the start of the process, which stay the same if the clock is set.

    Raises:
        psutil.NoSuchProcess: the process has ended.
    """
    created = process.create_time()
    try:
        return f"{_BOOT_ID.read_text().strip()} {created - psutil.boot_time():.2f}"
    except OSError:  # macOS; psutil allows for changes of the clock there.
        return f"{created:.2f}"


def kill_group(pid: int) -> None:
    """Kill all processes that a part has started; they may outlive the part."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
