"""The queue: the Celery app object, and how an organization's drain is requested.

The broker is not the source of truth: the queue is in the `batches` table. A message may be lost, late or delivered
twice: a sweep drains what was queued too long, and a drain issues only what it finds queued under the lock.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from celery import Celery
from celery.app.amqp import AMQP
from kombu.exceptions import OperationalError

from app import logs
from app.messaging.broker import broker_settings, patch_kombu
from app.settings import settings

ISSUE = "points.issue"
AUDIT = "points.audit"
FORGET_IDEMPOTENCY_KEYS = "points.forget_idempotency_keys"
FORGET_UPLOADS = "points.forget_uploads"

# The name of the Celery queue, which on Redis is a list of messages.
QUEUE = "points"
# The queue of the workers that deliver to webhooks. It gets no message (`worker.deliveries`): a Celery worker must take
# some queue, and theirs keeps them from sends.
DELIVERIES = "deliveries"

FORGET_IDEMPOTENCY_KEYS_EVERY_S = 600.0
FORGET_UPLOADS_EVERY_S = 3_600.0
# A message from beat expires after this time; otherwise a day without workers would leave hundreds. The clocks of two
# machines may differ by far less.
_SCHEDULED_EXPIRES_S = 3_600.0

# A drain has ten rounds of up to 20,000 recipients. This is many times longer than that takes.
TASK_TIME_LIMIT_S = 300
# How long RabbitMQ may take to confirm a message.
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
        "broker_connection_max_retries": None,  # A broker may be away for hours.
        # In seconds; RabbitMQ only. Within three times this, a worker notices that its connection is dead.
        "broker_heartbeat": 10,
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.1},
        "task_default_queue": QUEUE,
        # The queues of a worker without `--queues`. Workers for deliveries name their queue.
        "task_queues": {QUEUE: {}},
        "task_serializer": "json",
        "accept_content": ["json"],
        # The result is the batch's row. A result backend would be a second and weaker record.
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        # A message is acknowledged after its work. If the process dies first, it is delivered again.
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        "task_time_limit": TASK_TIME_LIMIT_S,
        "worker_send_task_events": settings().worker_events,
        # Flower learns of a job when a worker receives it. Telling it earlier would cost another message per send.
        "task_send_sent_event": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "timezone": "UTC",
        "beat_scheduler": "worker.alive:Scheduler",
        "beat_schedule": _schedule(),
    }


def _schedule() -> dict[str, Any]:
    """Return beat's tasks, which may wait while beat or the broker is away. What may not wait is in `worker.upkeep`."""
    every_s = {
        FORGET_IDEMPOTENCY_KEYS: FORGET_IDEMPOTENCY_KEYS_EVERY_S,
        FORGET_UPLOADS: FORGET_UPLOADS_EVERY_S,
        AUDIT: settings().audit_every_s,
    }
    options = {"queue": QUEUE, "expires": _SCHEDULED_EXPIRES_S}
    return {task: {"task": task, "schedule": s, "options": options} for task, s in every_s.items() if s}


class _Connection(AMQP.Connection):  # type: ignore[misc]  # Celery ships no types.
    def ensure_connection(self, *arguments: Any, **named: Any) -> Any:
        """Connect, with short pauses between the tries until the broker is back. Workers and beat wait here."""
        intervals = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": _CONNECTS_AGAIN_AFTER_S}
        return super().ensure_connection(*arguments, **intervals | named)


class _Protocol(AMQP):  # type: ignore[misc]
    Connection = _Connection


# Celery prefers these variables to its configuration, and they may be set for another project.
for _name in ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND"):
    os.environ.pop(_name, None)
celery = Celery("points", amqp=_Protocol)
patch_kombu()
celery.add_defaults(_configuration)  # Read when first needed, so that importing this needs no settings.


class Job(NamedTuple):
    """A drain that is requested: of all that an organization has queued.

    The others are for Flower and the logs: a batch of it (None: a reversal), its number of recipients, and the id of
    the HTTP request behind it.
    """

    organization_id: int
    batch_id: int | None = None
    recipients: int | None = None
    request_id: str | None = None


def submit(job: Job) -> bool:
    """Ask the workers to drain an organization's queue; tell whether the broker took the message.

    If the broker is away, that is not an error: the batch is accepted, and a sweep drains it.
    """
    arguments = job._asdict()
    try:
        options = {"queue": QUEUE, "ignore_result": True, "confirm_timeout": CONFIRMED_WITHIN_S}
        celery.send_task(ISSUE, kwargs=arguments, kwargsrepr=_shown(arguments), **options)
    except OperationalError:
        _log.warning("broker_out_of_reach", organization_id=job.organization_id, batch_id=job.batch_id)
        return False
    return True


def _shown(arguments: Mapping[str, object]) -> str:
    """Return the arguments as Flower shows them, without those that are None."""
    known = ((name.removesuffix("_id"), value) for name, value in arguments.items() if value is not None)
    return ", ".join(f"{word} {value}" for word, value in known)


def messages_waiting() -> int | None:
    """Return how many messages wait for a worker; None when the broker is out of reach."""
    with celery.connection_for_read() as connection:
        try:
            connection.ensure_connection(max_retries=1, timeout=CONFIRMED_WITHIN_S)
            return _waiting_in(QUEUE, connection)
        except (OperationalError, *connection.connection_errors):  # The second kind: the connection was lost meanwhile.
            return None


def _waiting_in(queue: str, connection: Any) -> int:
    try:
        with connection.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).message_count)
    except connection.channel_errors:  # No such queue: on Redis it is empty, on RabbitMQ it was never used.
        return 0


class Answering(NamedTuple):
    """The workers that answer a ping: those that issue, those that deliver to webhooks; and whether beat answers."""

    workers: list[str]
    deliveries: list[str]
    beat: bool


def answering(*, timeout_s: float) -> Answering:
    """Ping all workers and beat, and return which of them answer in time."""
    try:
        answers = celery.control.ping(timeout=timeout_s)
    except OperationalError:
        return Answering([], [], beat=False)
    names = sorted(name for answer in answers for name in answer)
    beats = [name for name in names if name.startswith("celerybeat@")]
    deliveries = [name for name in names if name.startswith("deliveries")]
    workers = [name for name in names if name not in beats and name not in deliveries]
    return Answering(workers, deliveries, beat=bool(beats))
