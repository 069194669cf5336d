"""One process of the service under test: started in a session of its own, started again when it dies."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_LOOK_EVERY_S = 0.05
_STOPPED_IN_S = 30.0


class Part:
    """A process that is kept running, except while it is held down."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.command = list(command)
        self.environment = dict(environment)
        self.deaths = 0
        self._log = log
        self._wanted = False
        self._retired = False
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The number of the process, which is that of its group as well."""
        with self._lock:
            assert self._process is not None, f"{self.name} has been started"
            return self._process.pid

    def start(self) -> None:
        """Start the process, and keep it running from now on."""
        with self._lock:
            self._wanted = not self._retired
            if self._retired or (self._process is not None and self._process.poll() is None):
                return
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self.command,
                    env=self.environment,
                    cwd=_ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def retire(self) -> None:
        """Never start the process again, whoever asks: a fault that was broken off may still be at it."""
        with self._lock:
            self._wanted, self._retired = False, True

    def look_after(self) -> None:
        """Start the process again if it died and is wanted."""
        with self._lock:
            if self._wanted and self._process is not None and self._process.poll() is not None:
                self.deaths += 1
                self.kill_group()
                self.start()

    def kill_group(self) -> None:
        """End the process and all it has started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        with self._lock, contextlib.suppress(ProcessLookupError):
            assert self._process is not None, f"{self.name} has been started"
            self._process.send_signal(number)

    def ask_to_end(self, number: signal.Signals) -> None:
        """Send a signal that ends the process, and leave it down from then on."""
        with self._lock:
            self._wanted = False
            if self._process is None or self._process.poll() is not None:
                return
            if number is signal.SIGKILL:
                self.kill_group()
            else:
                self.send(number)

    def wait_for_end(self, *, within_s: float = _STOPPED_IN_S) -> int | None:
        """Return the exit status of a process that was asked to end, or None when it did not end in time.

        It is then killed, as is in any case what it leaves behind: the run goes on, and the caller says what it saw.
        """
        assert self._process is not None, f"{self.name} has been started"
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill_group()
            self._process.wait()

    def hold_down(self, number: signal.Signals = signal.SIGKILL) -> int | None:
        """End the process by a signal, leave it down, and return its exit status; None as in `wait_for_end`."""
        self.ask_to_end(number)
        return self.wait_for_end()


class Supervisor:
    """Starts again whatever dies, as the service's own supervisor would."""

    def __init__(self) -> None:
        self.parts: dict[str, Part] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    def add(self, part: Part) -> Part:
        self.parts[part.name] = part
        part.start()
        if not self._thread.is_alive():
            self._thread.start()
        return part

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY_S):
            for part in list(self.parts.values()):
                part.look_after()

    def stop(self) -> None:
        """End every part, those that were started last first."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for part in reversed(self.parts.values()):
            part.hold_down(signal.SIGKILL)
