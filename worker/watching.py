"""What beat and Flower need of this package, and a worker too: the log, and Flower's options.

Flower is read-only, behind a password, and its jobs are saved if FLOWER_DB is set. Celery loads the `worker` package
before Flower reads its options, so what is set here are defaults: its FLOWER_… variables and its arguments still win.
"""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from celery.signals import beat_init, setup_logging

from app import logs
from app.settings import settings

# These log a line for each task sent, received and done. The ledger logs what was issued.
_VERBOSE_LOGGERS = ("celery.beat", "celery.worker.strategy", "celery.app.trace")


@setup_logging.connect
def _log(**_: Any) -> None:
    logs.configure("worker", log_format=settings().log_format)
    for name in _VERBOSE_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


@beat_init.connect
def _refuse_another_database(**_: Any) -> None:
    """Look in a process of its own: beat does without what that imports, 20 MB."""
    done = subprocess.run([sys.executable, "-c", "import migrations; migrations.end_if_unfit()"], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


@beat_init.connect
def _log_as_beat(**_: Any) -> None:
    logs.configure("beat", log_format=settings().log_format)


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
