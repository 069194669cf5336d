"""An empty Celery task on the broker of the service under test, and a worker for it, started like the service's."""

import contextlib
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from redis import Redis

from app.local.parts import WORKER_PROCESSES

REPLIES = "bench:replies"


def _configuration() -> dict[str, Any]:
    return {
        "broker_url": os.environ["REDIS_URL"],
        "result_backend": os.environ["REDIS_URL"],
        "task_default_queue": "bench",
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_prefetch_multiplier": 1,
    }


# Celery warns root because of pickled messages; this worker accepts JSON only.
warnings.simplefilter("ignore", SecurityWarning)

celery = Celery("bench")
celery.add_defaults(_configuration)  # Read at first use: the service must run before its URL is known.


@lru_cache(maxsize=1)
def _redis() -> Redis:
    return Redis.from_url(os.environ["REDIS_URL"])


@celery.task(name="bench.with_result")  # type: ignore[untyped-decorator]  # Celery ships no types.
def with_result() -> None:
    """Do nothing; Celery stores the result."""


@celery.task(name="bench.with_reply", ignore_result=True)  # type: ignore[untyped-decorator]  # As above.
def with_reply() -> None:
    """Do nothing; push a reply to the list that the caller blocks on."""
    _redis().lpush(REPLIES, "")


@contextlib.contextmanager
def worker() -> Iterator[None]:
    """Run a worker for both tasks until the block ends; REDIS_URL names the broker."""
    command = [sys.executable, "-m", "celery", "--app", "benchmarks.empty_task", "--quiet", "worker"]
    command += ["--hostname", "bench@%h", "--concurrency", str(WORKER_PROCESSES), "--loglevel", "ERROR"]
    command += ["--without-mingle", "--without-gossip"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
