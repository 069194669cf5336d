"""Flower, as this service runs it: for looking only, behind a password, and remembering what it has seen.

Celery loads the `worker` package before Flower reads its options, so what is set here are defaults:
Flower's own FLOWER_… variables and its arguments still win.
"""

import os
import re
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path

from app import logs
from app.settings import settings

_PORT = re.compile(r"[0-9]{1,5}")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# A job is a few kilobytes of memory, and all of them are saved at once.
_JOBS_KEPT = 10_000
_SAVE_EVERY_MS = 60_000
# A worker is offline a few seconds after its last sign. Without this it stays listed for ever, in /metrics as online.
_OFFLINE_WORKERS_KEPT_S = 60


def prepare(arguments: Sequence[str], environment: MutableMapping[str, str] = os.environ) -> None:
    """Set Flower's defaults in the process that is about to run it.

    Raises:
        SystemExit: it would show its pages to everybody, or to nobody.
    """
    _require_password(arguments, environment)
    # Of anything but a number, Flower would make a trace.
    port = environment.get("FLOWER_PORT", "0")
    if not port or port.startswith("tcp://"):
        del environment["FLOWER_PORT"]  # What Kubernetes tells every container of a service that is named flower.
    elif not _PORT.fullmatch(port):
        raise SystemExit("points: FLOWER_PORT must be the number of a port.")
    logs.configure("flower", log_format=settings().log_format)
    from flower.options import options  # noqa: PLC0415  # Only in its own process: it reads settings when imported.

    options.read_only = True
    options.natural_time = False
    # It would else tell the workers to report their jobs, whatever the setting says.
    options.enable_events = settings().worker_events
    # The arguments say for which organization a job is, and for how many recipients, its result which batches it has
    # issued. Every job shown is an issue, so its name is left out, and the rest fits on a screen.
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

    # Flower takes several, with commas between them, and one without a colon lets nobody in.
    if not all(":" in each for each in option("basic_auth").split(",") if each):
        raise SystemExit("points: FLOWER_BASIC_AUTH must be user:password.")
    if option("basic_auth") or option("auth") or option("unix_socket") or option("address") in _LOOPBACK:
        return
    raise SystemExit(
        "points: Flower would show its pages to whoever reaches it. Set FLOWER_BASIC_AUTH to user:password,"
        " or FLOWER_ADDRESS to 127.0.0.1."
    )
