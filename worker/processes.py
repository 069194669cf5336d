"""What each Celery process does when it starts and ends: its log and its connections."""

import logging
from typing import Any

import billiard.pool
from celery.signals import (
    beat_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_ready,
)
from structlog.contextvars import bind_contextvars, clear_contextvars

from app import logs
from app.postgres.connections import discard_inherited_connections, require_writable_server
from app.settings import misspelt_settings, settings

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


@worker_ready.connect
def _warn_of_unknown_settings(**_: Any) -> None:
    for name, meant in misspelt_settings():
        logs.logger().warning("setting_not_known", name=name, meant=meant)


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
