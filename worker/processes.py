"""The processes: what each of Celery does at its start and end (log, connections, upkeep beside the pool), and Flower.

Flower is read-only, behind a password, and its jobs are saved if FLOWER_DB is set. Celery loads the `worker` package
before Flower reads its options, so what is set here are defaults: its FLOWER_… variables and its arguments still win.
"""

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import billiard.pool
from celery import bootsteps
from celery.signals import (
    beat_init,
    celeryd_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_ready,
)
from structlog.contextvars import bind_contextvars, clear_contextvars

from app import logs
from app.messaging.jobs import celery
from app.postgres.connections import discard_inherited_connections, require_writable_server
from app.settings import misspelt_settings, settings
from migrations import end_if_unfit
from worker.deliveries import is_delivering

# These log a line for each task sent, received and done. The ledger logs what was issued.
_VERBOSE_LOGGERS = ("celery.beat", "celery.worker.strategy", "celery.app.trace")

# How long an ending child process waits for its parent to read its last results, in tenths of a second (300 in
# billiard). An ending parent never reads the result of a task that it has just handed over, so it would wait the whole
# time for the child. The broker delivers that message again; another worker then finds nothing to do.
billiard.pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = 10


@setup_logging.connect
def _log(**_: Any) -> None:
    logs.configure("worker", log_format=settings().log_format)
    for name in _VERBOSE_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


@celeryd_init.connect
@beat_init.connect
def _refuse_another_database(**_: Any) -> None:
    end_if_unfit()


@worker_ready.connect
def _warn_of_unknown_settings(**_: Any) -> None:
    for name, meant in misspelt_settings():
        _logger.warning("setting_not_known", name=name, meant=meant)


@beat_init.connect
def _log_as_beat(**_: Any) -> None:
    logs.configure("beat", log_format=settings().log_format)


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

_PORT = re.compile(r"[0-9]{1,5}")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# A job takes a few kilobytes of memory, and all jobs are saved together.
_JOBS_KEPT = 10_000
_SAVE_EVERY_MS = 60_000
# A worker counts as offline a few seconds after its last sign. Without this limit it stays listed, and in /metrics it
# stays online.
_OFFLINE_WORKERS_KEPT_S = 60


def prepare_flower(arguments: Sequence[str], environment: MutableMapping[str, str] = os.environ) -> None:
    """Set Flower's defaults in the process that is about to run it.

    Raises:
        SystemExit: its pages would be open to everybody, or to nobody.
    """
    _require_password(arguments, environment)
    # Flower answers anything but a number with a traceback.
    port = environment.get("FLOWER_PORT", "0")
    if not port or port.startswith("tcp://"):
        del environment["FLOWER_PORT"]  # Kubernetes sets it if there is a service named flower.
    elif not _PORT.fullmatch(port):
        raise SystemExit("points: FLOWER_PORT must be the number of a port.")
    logs.configure("flower", log_format=settings().log_format)
    from flower.options import options  # noqa: PLC0415  # Only in Flower's process: it reads settings when imported.

    options.read_only = True
    options.natural_time = False
    # Otherwise it would tell the workers to report their jobs, against the setting.
    options.enable_events = settings().worker_events
    # The arguments show a job's organization and number of recipients; the result shows the batches it has issued.
    # Every job shown is an issue, so its name is left out, and the rest fits on a screen.
    options.tasks_columns = "state,kwargs,result,received,runtime,uuid"
    options.max_tasks = _JOBS_KEPT
    options.purge_offline_workers = _OFFLINE_WORKERS_KEPT_S
    if "FLOWER_DB" in environment:
        options.persistent = True
        options.state_save_interval = _SAVE_EVERY_MS
        Path(environment["FLOWER_DB"]).parent.mkdir(parents=True, exist_ok=True)


def _require_password(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    given = {
        name.lstrip("-").replace("-", "_"): value for name, _, value in (word.partition("=") for word in arguments)
    }

    def option(name: str) -> str:
        return given.get(name) or environment.get(f"FLOWER_{name.upper()}", "")

    # Flower takes several, separated by commas. One without a colon lets nobody in.
    if not all(":" in each for each in option("basic_auth").split(",") if each):
        raise SystemExit("points: FLOWER_BASIC_AUTH must be user:password.")
    if option("basic_auth") or option("auth") or option("unix_socket") or option("address") in _LOOPBACK:
        return
    raise SystemExit(
        "points: Flower would show its pages to everybody who reaches it. Set FLOWER_BASIC_AUTH to user:password,"
        " or FLOWER_ADDRESS to 127.0.0.1."
    )
