"""Running the rival on the servers of the service under test."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import insert
from sqlalchemy.orm import Session

from app.local import ports
from app.local.parts import WORKER_PROCESSES
from benchmarks.options import NotMeasured
from benchmarks.rival.models import Base, Organization, User, engine

# As many processes and kept connections as the service; more threads than callers.
_WEB_PROCESSES, _WEB_THREADS, _KEPT_S = 2, 64, 30
_STARTED_IN_S = 60.0
KEY = "rival-key"


@dataclass(frozen=True, kw_only=True)
class Rival:
    port: int


@contextlib.contextmanager
def running(emails: Sequence[str]) -> Iterator[Rival]:
    """Make the tables, an organization and these users; run the rival until the block ends.

    DATABASE_URL and REDIS_URL name the servers.
    """
    Base.metadata.create_all(engine())
    with Session(engine()) as session, session.begin():
        session.add(Organization(api_key=KEY, balance=10**15))
        session.execute(insert(User), [{"email": email, "balance": 0} for email in emails])
    engine().dispose()
    port = ports.any_free()
    celery = [sys.executable, "-m", "celery", "--app", "benchmarks.rival.tasks", "--quiet", "worker"]
    celery += ["--hostname", "rival@%h", "--concurrency", str(WORKER_PROCESSES), "--loglevel", "ERROR"]
    gunicorn = [sys.executable, "-m", "gunicorn", "benchmarks.rival.web:app", "--bind", f"{ports.HOST}:{port}"]
    gunicorn += ["--worker-class", "gthread", "--workers", str(_WEB_PROCESSES), "--threads", str(_WEB_THREADS)]
    gunicorn += ["--keep-alive", str(_KEPT_S), "--timeout", "600", "--log-level", "error"]
    commands = [[*celery, "--without-mingle", "--without-gossip"], gunicorn]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    nothing = subprocess.DEVNULL  # Errors still reach the terminal.
    processes = [subprocess.Popen(command, stdin=nothing, stdout=nothing, env=environment) for command in commands]
    try:
        _wait_until_it_listens(port)
        yield Rival(port=port)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)
        engine.cache_clear()


def _wait_until_it_listens(port: int) -> None:
    deadline = time.monotonic() + _STARTED_IN_S
    while ports.is_free(port):
        if time.monotonic() > deadline:
            raise NotMeasured("The rival did not come up.")
        time.sleep(0.1)
