"""The queue: the Celery app object, and how an organization's drain is asked for.

The broker carries hints and no truth: what is queued stands in the `batches` table. A message that is
lost, late or delivered twice costs time or nothing, because the sweep asks again and a drain only
issues what it finds queued under the lock.
"""

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP
from celery.schedules import schedule
from kombu.exceptions import OperationalError

from app import kombu_patches, logs
from app.broker import broker_settings
from app.settings import settings

ISSUE = "points.issue"
SWEEP = "points.sweep"
CLAIM_CROSSED = "points.claim_crossed"
FOLD = "points.fold"
AUDIT = "points.audit"
FORGET_IDEMPOTENCY_KEYS = "points.forget_idempotency_keys"

# The names of the Celery queues, which on Redis are lists of messages.
QUEUE = "points"
# Another one, so that scheduled messages neither wait behind the sends nor pile up before them.
SCHEDULED_QUEUE = "points.scheduled"

SWEEP_EVERY_S = 2.0
# How often crossings of a registration and an issue are looked for, and among whom: the users registered within so many
# seconds, or (None) all. Neither a registration nor an issue lasts a quarter of an hour, so the second of these windows
# misses none. After an import of a million users a look takes ten seconds, too long for one every five.
CLAIM_CROSSED_EVERY_S = {5.0: 60.0, 30.0: 900.0, 3_600.0: None}
FOLD_EVERY_S = 5.0
FORGET_IDEMPOTENCY_KEYS_EVERY_S = 600.0

# A batch that waited this long has probably lost its message; before that, it has only been busy.
QUEUED_TOO_LONG_S = 3.0

# A drain goes through ten rounds of up to 20,000 recipients; this is many times what that takes.
TASK_TIME_LIMIT_S = 300
# How long RabbitMQ may take to say that it has a message.
CONFIRMED_WITHIN_S = 2.0

# While the broker is away, workers and beat try again after so long at the most; Celery's own is half a minute.
_CONNECTS_AGAIN_AFTER_S = 2.0

_log = logs.logger()


def _configuration() -> dict[str, Any]:
    return {
        **broker_settings(settings().broker_url or settings().redis_url),
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,  # A broker that is away for an hour comes back all the same.
        "task_publish_retry_policy": {
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0.1,
            "interval_max": 0.1,
        },
        "task_default_queue": QUEUE,
        "task_queues": {QUEUE: {}, SCHEDULED_QUEUE: {}},
        "task_serializer": "json",
        "accept_content": ["json"],
        # The answer is the batch's row. A result backend would be a second, weaker truth.
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        # A message is acknowledged after its work, and comes again when the process died on it.
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        "task_time_limit": TASK_TIME_LIMIT_S,
        "worker_send_task_events": settings().worker_events,
        # Flower learns of a job when a worker receives it; to tell it before would cost each send a message.
        "task_send_sent_event": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "timezone": "UTC",
        "beat_scheduler": "worker.schedule:SteadyScheduler",
        "beat_schedule": _schedule(),
    }


def _schedule() -> dict[str, Any]:
    return {
        # Due at once: what was queued before beat began has waited long enough.
        "sweep": _every(SWEEP, SWEEP_EVERY_S) | {"last_run_at": _LONG_AGO},
        **{
            # At once too: where beat never runs for a whole hour, the last of them would else never be sent.
            f"claim-crossed-{seconds:.0f}": _every(CLAIM_CROSSED, seconds, registered_within_s=registered_within_s)
            | {"last_run_at": _LONG_AGO}
            for seconds, registered_within_s in CLAIM_CROSSED_EVERY_S.items()
        },
        "fold": _every(FOLD, FOLD_EVERY_S),
        **({"audit": _every(AUDIT, settings().audit_every_s)} if settings().audit_every_s else {}),
        "forget-idempotency-keys": _every(FORGET_IDEMPOTENCY_KEYS, FORGET_IDEMPOTENCY_KEYS_EVERY_S),
    }


def _every(task: str, seconds: float, **arguments: object) -> dict[str, Any]:
    """Schedule a task by a clock that nobody sets: beat must not wait for an hour when its wall clock is put back."""
    when = schedule(seconds, nowfun=_steady_now)
    return {"task": task, "schedule": when, "kwargs": arguments, "options": {"queue": SCHEDULED_QUEUE}}


def _steady_now() -> datetime:
    """Return a moment of no calendar: only the time between two of them means anything."""
    return _START_OF_THE_CLOCK + timedelta(seconds=time.monotonic())


_START_OF_THE_CLOCK = datetime(1970, 1, 1, tzinfo=UTC)
_LONG_AGO = _START_OF_THE_CLOCK - timedelta(days=1)


class _Connection(AMQP.Connection):  # type: ignore[misc]  # Celery ships no types.
    def ensure_connection(self, *arguments: Any, **named: Any) -> Any:
        """Try again soon, and no later than that after an hour: workers and beat wait here for a broker."""
        intervals = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": _CONNECTS_AGAIN_AFTER_S}
        return super().ensure_connection(*arguments, **intervals | named)


class _Protocol(AMQP):  # type: ignore[misc]
    Connection = _Connection


# Celery takes these for more than its configuration, whoever has set them, and for another project it may be.
for _name in ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND"):
    os.environ.pop(_name, None)
celery = Celery("points", amqp=_Protocol)
kombu_patches.apply()
celery.add_defaults(_configuration)  # Read when first needed, so that importing this needs no settings.


def submit(
    organization_id: int,
    *,
    batch_id: int | None = None,
    recipients: int | None = None,
    request_id: str | None = None,
) -> bool:
    """Ask the workers to drain an organization's queue; tell whether the broker took the message.

    `batch_id`, `recipients` (a count) and `request_id` are for the people who watch the jobs and read
    the logs; the drain takes whatever is queued. A broker that is away is no error: the batch is
    accepted, the sweep brings it.
    """
    arguments = {
        "organization_id": organization_id,
        "batch_id": batch_id,
        "recipients": recipients,
        "request_id": request_id,
    }
    try:
        celery.send_task(
            ISSUE,
            kwargs=arguments,
            kwargsrepr=_shown(arguments),
            queue=QUEUE,
            ignore_result=True,
            confirm_timeout=CONFIRMED_WITHIN_S,
        )
    except OperationalError:
        # The sweep will bring it.
        _log.warning("broker_out_of_reach", organization_id=organization_id, batch_id=batch_id)
        return False
    return True


def _shown(arguments: Mapping[str, object]) -> str:
    """Return the arguments as Flower shows them; what is unknown, as in a sweep's message, is left out."""
    words = {
        "organization": "organization_id",
        "batch": "batch_id",
        "recipients": "recipients",
        "request": "request_id",
    }
    known = ((word, arguments[name]) for word, name in words.items() if arguments[name] is not None)
    return ", ".join(f"{word} {value}" for word, value in known)
