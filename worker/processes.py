"""The processes of a worker: what each does at its start and end (connections, upkeep beside the pool)."""

import gc
import os
import subprocess
import sys
import threading
from typing import Any

import billiard.pool
from celery import bootsteps
from celery.signals import (
    celeryd_init,
    task_postrun,
    task_prerun,
    worker_before_create_process,
    worker_process_init,
    worker_ready,
)
from structlog.contextvars import bind_contextvars, clear_contextvars

from app import logs
from app.messaging.jobs import celery
from app.postgres.connections import discard_inherited_connections, require_writable_server
from app.settings import misspelt_settings
from migrations import end_if_unfit
from worker.deliveries import is_delivering

# How long an ending child process waits for its parent to read its last results, in tenths of a second (300 in
# billiard). An ending parent never reads the result of a task that it has just handed over, so it would wait the whole
# time for the child. The broker delivers that message again; another worker then finds nothing to do.
billiard.pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = 10


@celeryd_init.connect
def _refuse_another_database(**_: Any) -> None:
    end_if_unfit()


@worker_ready.connect
def _warn_of_unknown_settings(**_: Any) -> None:
    for name, meant in misspelt_settings():
        _logger.warning("setting_not_known", name=name, meant=meant)


@worker_before_create_process.connect
def _before_fork(**_: Any) -> None:
    """Hide what exists now from the garbage collector: in each child it would write to every object, and so copy it."""
    gc.collect()
    gc.freeze()


@worker_process_init.connect
def _after_fork(**_: Any) -> None:
    discard_inherited_connections()
    require_writable_server()


@task_prerun.connect
def _bind_log_context(task_id: str, kwargs: dict[str, Any], **_: Any) -> None:
    """Add the task's id, and the id of the request that asked for it, to every log line of the task."""
    clear_contextvars()
    asked_by = kwargs.get("request_id")
    bind_contextvars(task_id=task_id, **({} if asked_by is None else {"request_id": asked_by}))


@task_postrun.connect
def _clear_log_context(**_: Any) -> None:
    clear_contextvars()


_STARTS_AGAIN_AFTER_S = 1.0

_logger = logs.logger()


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
                _logger.warning("upkeep_failed", work="start", **logs.kind_of(error))
            self._stopping.wait(_STARTS_AGAIN_AFTER_S)

    def _spawn(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            command = [sys.executable, "-m", "worker.upkeep", str(os.getpid())]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            return self._process


celery.steps["worker"].add(Upkeep)
