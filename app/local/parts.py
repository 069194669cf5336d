"""The parts of the service: the command that starts each, and the signal and time for its stop."""

import signal
import sys
from dataclasses import replace
from pathlib import Path

from app.local.ports import HOST
from app.local.postgresql import PostgreSQL
from app.local.supervisor import Part
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
    gunicorn = ("gunicorn", "--config", "python:app.web.gunicorn", "--bind", f"{HOST}:{port}")
    return Part(
        name="web",
        environment=_logs(),
        stop_timeout_s=settings().wait_s + 15,
        command=[sys.executable, "-m", *gunicorn],
    )


def worker(number: int) -> Part:
    """A Celery worker. After a SIGTERM it finishes the running drains."""
    return _worker(f"worker{number}", "--concurrency", str(WORKER_PROCESSES))


def deliveries() -> Part:
    """The Celery worker that delivers to webhooks. After a SIGTERM it finishes the running attempts."""
    options = ("--queues", "deliveries", "--pool", "threads", "--concurrency", str(DELIVERY_THREADS))
    return _worker("deliveries", *options)


def _worker(name: str, *options: str) -> Part:
    # The service does not use what workers exchange by mingle and gossip.
    return _celery(name, "worker", "--hostname", f"{name}@%h", *options, "--without-mingle", "--without-gossip")


def beat() -> Part:
    """Beat; it answers pings as long as it schedules, and wakes up at least twice a minute."""
    return _celery("beat", "beat", "--pidfile=", "--enable-remote-control", "--max-interval", "30")


def flower(port: int, password: str, memory: Path) -> Part:
    """Flower on the loopback address, behind a password; it stores the jobs it has seen in the file `memory`."""
    part = _celery("flower", "flower", f"--address={HOST}", f"--port={port}", "--logging=error")
    own = {"FLOWER_BASIC_AUTH": f"{FLOWER_USER}:{password}", "FLOWER_DB": str(memory)}
    return replace(part, environment={**part.environment, **own}, stop_timeout_s=10)


def _celery(name: str, *arguments: str) -> Part:
    command = [sys.executable, "-m", "celery", "--app", "worker", "--quiet", *arguments]
    return Part(name=name, environment=_logs(), command=command)


def _logs() -> dict[str, str]:
    """Make a part log as text: the supervisor shows its output to a person, mostly."""
    log_format = settings().log_format
    return {"POINTS_LOG_FORMAT": "text" if log_format == "auto" else log_format}
