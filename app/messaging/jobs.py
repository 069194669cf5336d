"""The queue: the Celery app object, and how an organization's drain is asked for.

The broker holds no truth: what is queued stands in the `batches` table. A message may be lost, late or delivered
twice: a sweep drains what was queued too long, and a drain only issues what it finds queued under the lock.
"""

import os
from collections.abc import Mapping
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP
from kombu.exceptions import OperationalError

from app import logs
from app.messaging import kombu_patches
from app.messaging.broker import broker_settings
from app.settings import settings

ISSUE = "points.issue"
DELIVER = "points.deliver"
AUDIT = "points.audit"
FORGET_IDEMPOTENCY_KEYS = "points.forget_idempotency_keys"
FORGET_UPLOADS = "points.forget_uploads"

# The name of the Celery queue, which on Redis is a list of messages.
QUEUE = "points"
# That of the deliveries to webhooks, with workers of their own: a slow receiver never takes a place from a send.
DELIVERIES = "deliveries"

FORGET_IDEMPOTENCY_KEYS_EVERY_S = 600.0
FORGET_UPLOADS_EVERY_S = 3_600.0
# A message of beat's expires after this time, or a day without workers would leave hundreds. It is far longer than the
# clocks of two machines may differ.
_SCHEDULED_EXPIRES_S = 3_600.0

# A drain goes through ten rounds of up to 20,000 recipients; this is many times what that takes.
TASK_TIME_LIMIT_S = 300
# How long RabbitMQ may take to say that it has a message.
CONFIRMED_WITHIN_S = 1.0

# The longest pause between two tries while the broker is away. Celery's default is half a minute.
_CONNECTS_AGAIN_AFTER_S = 2.0

_log = logs.logger()


def _configuration() -> dict[str, Any]:
    return {
        **broker_settings(settings().broker_url or settings().redis_url),
        "broker_connection_retry_on_startup": True,
        # A Redis that refuses to write (a replica, or its memory or disk is full) counts as away.
        "broker_channel_error_retry": True,
        "broker_connection_max_retries": None,  # A broker that is away for an hour comes back all the same.
        # In seconds, and of RabbitMQ alone. A worker finds out within three times this that its connection is silent.
        "broker_heartbeat": 10,
        "task_publish_retry_policy": {
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0.1,
            "interval_max": 0.1,
        },
        "task_default_queue": QUEUE,
        # What a worker takes that is not told: the deliveries are for those that are.
        "task_queues": {QUEUE: {}},
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
        # Flower learns of a job when a worker receives it. To tell it earlier would cost a message for each send.
        "task_send_sent_event": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "timezone": "UTC",
        # In memory. What is kept on disk would remember a clock that has been set since.
        "beat_scheduler": "celery.beat:Scheduler",
        "beat_schedule": _schedule(),
    }


def _schedule() -> dict[str, Any]:
    """Return what beat asks for: what may wait while it or the broker is away. What may not is in `worker.upkeep`."""
    every_s = {
        FORGET_IDEMPOTENCY_KEYS: FORGET_IDEMPOTENCY_KEYS_EVERY_S,
        FORGET_UPLOADS: FORGET_UPLOADS_EVERY_S,
        AUDIT: settings().audit_every_s,
    }
    options = {"queue": QUEUE, "expires": _SCHEDULED_EXPIRES_S}
    return {task: {"task": task, "schedule": s, "options": options} for task, s in every_s.items() if s}


class _Connection(AMQP.Connection):  # type: ignore[misc]  # Celery ships no types.
    def ensure_connection(self, *arguments: Any, **named: Any) -> Any:
        """Connect with short pauses between the tries, however long the broker is away: workers and beat wait here."""
        intervals = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": _CONNECTS_AGAIN_AFTER_S}
        return super().ensure_connection(*arguments, **intervals | named)


class _Protocol(AMQP):  # type: ignore[misc]
    Connection = _Connection


# Celery prefers these variables to its configuration, and they may be set for another project.
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
    accepted, a sweep brings it.
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
        # A sweep will bring it.
        _log.warning("broker_out_of_reach", organization_id=organization_id, batch_id=batch_id)
        return False
    return True


def submit_delivery(webhook_id: int) -> bool:
    """Ask the workers to deliver to a webhook; tell whether the broker took the message.

    A broker that is away is no error: each delivering worker looks by itself, once a second.
    """
    try:
        celery.send_task(
            DELIVER,
            kwargs={"webhook_id": webhook_id},
            queue=DELIVERIES,
            ignore_result=True,
            confirm_timeout=CONFIRMED_WITHIN_S,
        )
    except OperationalError:
        _log.warning("broker_out_of_reach", webhook_id=webhook_id)
        return False
    return True


def _shown(arguments: Mapping[str, object]) -> str:
    """Return the arguments as Flower shows them; what is unknown is left out."""
    words = {
        "organization": "organization_id",
        "batch": "batch_id",
        "recipients": "recipients",
        "request": "request_id",
    }
    known = ((word, arguments[name]) for word, name in words.items() if arguments[name] is not None)
    return ", ".join(f"{word} {value}" for word, value in known)
