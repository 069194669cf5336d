"""The parts of the service as `points up` runs them: how each is started, and how it is asked to stop."""

import signal
import sys
from pathlib import Path

from app.local.part import Part
from app.local.ports import HOST
from app.local.postgresql import PostgreSQL
from app.local.valkey import Valkey
from app.settings import settings

# Drains wait for PostgreSQL most of the time: a few processes a core keep it busy.
WORKER_PROCESSES = 4
FLOWER_USER = "points"


def postgresql(server: PostgreSQL) -> Part:
    return Part(
        name="postgresql",
        command=server.command(),
        stop_signal=signal.SIGINT,
        stop_timeout_s=60,
        hide="the database system is starting up",  # To whoever asks whether it is ready.
    )


def valkey(server: Valkey) -> Part:
    # It advises to change a setting of the machine, which matters to servers far larger than this one.
    return Part(name="valkey", command=server.command(), hide="vm.overcommit_memory")


def web(port: int) -> Part:
    """The front end; a SIGTERM lets the calls that wait have their answers, however long they may wait."""
    return Part(
        name="web",
        environment=_logs(),
        stop_timeout_s=settings().wait_s + 15,
        command=[
            sys.executable,
            "-m",
            "gunicorn",
            "--config",
            "python:app.api.gateway",
            "--bind",
            f"{HOST}:{port}",
        ],
    )


def worker(number: int) -> Part:
    """A Celery worker; a SIGTERM lets it finish the drains that run."""
    name = f"worker{number}"
    return Part(
        name=name,
        environment=_logs(),
        # Without mingle and gossip: what workers tell each other at start and after is of no use to us.
        command=[
            *_celery(),
            *("worker", "--hostname", f"{name}@%h", "--concurrency", str(WORKER_PROCESSES)),
            *("--without-mingle", "--without-gossip"),
        ],
    )


def beat() -> Part:
    """Beat; it answers pings as long as it schedules, which it looks at twice a minute."""
    options = ("--pidfile=", "--enable-remote-control", "--max-interval", "30")
    return Part(name="beat", environment=_logs(), command=[*_celery(), "beat", *options])


def flower(port: int, password: str, memory: Path) -> Part:
    """Flower on the loopback address, behind a password; what it has seen is kept in the file `memory`."""
    return Part(
        name="flower",
        command=[*_celery(), "flower", f"--address={HOST}", f"--port={port}", "--logging=error"],
        environment={
            **_logs(),
            "FLOWER_BASIC_AUTH": f"{FLOWER_USER}:{password}",
            "FLOWER_DB": str(memory),
        },
        stop_timeout_s=10,
    )


def _logs() -> dict[str, str]:
    """Have a part write for people: its output goes through the supervisor, to a person most of the time."""
    log_format = settings().log_format
    return {"POINTS_LOG_FORMAT": "text" if log_format == "auto" else log_format}


def _celery() -> list[str]:
    return [sys.executable, "-m", "celery", "--app", "worker", "--quiet"]
