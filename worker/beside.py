"""The step of a worker that runs its upkeep beside the pool: started after the pool, killed before the pool ends."""

import os
import subprocess
import sys
import threading
from typing import Any

from celery import bootsteps

from app import logs
from app.messaging.jobs import celery
from worker.deliveries import is_delivering

_STARTS_AGAIN_AFTER_S = 1.0

_log = logs.logger()


class Upkeep(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery ships no types.
    """Runs `worker.upkeep` as a process, and starts it again when it dies.

    A thread waits for the process, because the parent's loop blocks while the broker is away.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        super().__init__(parent, **options)

    def include_if(self, parent: Any) -> bool:
        return not is_delivering(parent)  # A delivering worker has its own step, `Look`.

    def start(self, parent: Any) -> None:
        threading.Thread(target=self._keep_running, name="upkeep", daemon=True).start()

    def stop(self, parent: Any) -> None:
        """Kill it at any point: what it has not committed is still queued."""
        with self._lock:
            self._stopping.set()
            if self._process is not None:
                self._process.kill()

    terminate = stop

    def _keep_running(self) -> None:
        while not self._stopping.is_set():
            try:
                if (process := self._spawn()) is not None:
                    process.wait()
            except OSError as error:  # Too many processes, or too little memory, just now.
                _log.warning("upkeep_failed", work="start", **logs.kind_of(error))
            self._stopping.wait(_STARTS_AGAIN_AFTER_S)

    def _spawn(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            command = [sys.executable, "-m", "worker.upkeep", str(os.getpid())]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            return self._process


celery.steps["worker"].add(Upkeep)
