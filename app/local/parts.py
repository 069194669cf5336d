"""The parts of the service: the command that starts each, and the signal and time for its stop."""

import signal
import sys
from pathlib import Path

from app.local.part import Part
from app.local.ports import HOST
from app.local.postgresql import PostgreSQL
from app.local.valkey import Valkey
from app.settings import settings

# Drains mostly wait for PostgreSQL, so a few processes per core keep it busy.
WORKER_PROCESSES = 4
# Each waits for a receiver, for up to 15 s.
DELIVERY_THREADS = 16
FLOWER_USER = "points"


def postgresql(server: PostgreSQL) -> Part:
    return Part(
        name="postgresql",
        command=server.command(),
        stop_signal=signal.SIGINT,
        stop_timeout_s=60,
        hide="the database system is starting up",  # PostgreSQL logs this at each readiness check.
    )


def valkey(server: Valkey) -> Part:
    # Valkey recommends this setting of the machine, which only matters to much larger servers.
    return Part(name="valkey", command=server.command(), hide="vm.overcommit_memory", mend=server.set_data_aside)


def web(port: int) -> Part:
    """The front. After a SIGTERM it still answers the waiting calls, hence the long timeout."""
    return Part(
        name="web",
        environment=_logs(),
        stop_timeout_s=settings().wait_s + 15,
        command=[
            sys.executable,
            "-m",
            "gunicorn",
            "--config",
            "python:app.web.gunicorn",
            "--bind",
            f"{HOST}:{port}",
        ],
    )


def worker(number: int) -> Part:
    """A Celery worker. After a SIGTERM it finishes the running drains."""
    name = f"worker{number}"
    return Part(
        name=name,
        environment=_logs(),
        # The service does not use what workers exchange by mingle and gossip.
        command=[
            *_celery(),
            *("worker", "--hostname", f"{name}@%h", "--concurrency", str(WORKER_PROCESSES)),
            *("--without-mingle", "--without-gossip"),
        ],
    )


def deliveries() -> Part:
    """The Celery worker that delivers to webhooks. After a SIGTERM it finishes the running attempts."""
    return Part(
        name="deliveries",
        environment=_logs(),
        command=[
            *_celery(),
            *("worker", "--hostname", "deliveries@%h", "--queues", "deliveries", "--pool", "threads"),
            *("--concurrency", str(DELIVERY_THREADS), "--without-mingle", "--without-gossip"),
        ],
    )


def beat() -> Part:
    """Beat; it answers pings as long as it schedules, and wakes up at least twice a minute."""
    options = ("--pidfile=", "--enable-remote-control", "--max-interval", "30")
    return Part(name="beat", environment=_logs(), command=[*_celery(), "beat", *options])


def flower(port: int, password: str, memory: Path) -> Part:
    """Flower on the loopback address, behind a password; it stores the jobs it has seen in the file `memory`."""
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
    """Make a part log as text: the supervisor shows its output to a person, mostly."""
    log_format = settings().log_format
    return {"POINTS_LOG_FORMAT": "text" if log_format == "auto" else log_format}


def _celery() -> list[str]:
    return [sys.executable, "-m", "celery", "--app", "worker", "--quiet"]
