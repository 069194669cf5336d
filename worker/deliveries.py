"""Deliveries to webhooks: the task, and the step of a delivering worker that looks once a second without a message.

A delivering worker has threads (`--pool threads --queues deliveries`), because it mostly waits for receivers. It does
not fork, so it can look in the same process, also while the broker is away.
"""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from celery import bootsteps
from celery.signals import worker_shutting_down

from app import logs
from app.messaging import hints
from app.messaging.jobs import DELIVER, DELIVERIES, celery, submit_delivery
from app.messaging.worker_counters import WEBHOOK_ATTEMPTS, count
from app.postgres.connections import require_writable_server
from app.postgres.database import steps, transaction
from app.webhooks import cursors, delivery
from app.webhooks.attempts import Attempt

LOOK_EVERY_S = 1.0
_DROP_EVERY_LOOKS = 60
_DROP_STEP = 1_000
_DROP_STEPS_MAX = 100

_stopping = threading.Event()
_log = logs.logger()


@celery.task(name=DELIVER, send_events=False)
def deliver(webhook_id: int) -> None:
    """Deliver the events that wait for a webhook."""
    if _deliver(webhook_id) and not _stopping.is_set():
        submit_delivery(webhook_id)


def _deliver(webhook_id: int) -> bool:
    outcomes: Counter[str] = Counter()

    def tell(attempt: Attempt) -> None:
        outcomes[WEBHOOK_ATTEMPTS.field(attempt.error or "delivered")] += 1

    try:
        return delivery.deliver(webhook_id, tell=tell, withdraw=hints.withdraw_delivery, is_stopping=_stopping.is_set)
    finally:
        if outcomes:
            count(outcomes)


@worker_shutting_down.connect
def _stop(**_: Any) -> None:
    _stopping.set()


class Look(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery ships no types.
    """Looks once a second for webhooks that have something to deliver, because messages may be lost."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        self._threads = ThreadPoolExecutor(parent.concurrency, thread_name_prefix="deliveries")
        self._under_way: set[int] = set()
        self._looks = 0
        super().__init__(parent, **options)

    def include_if(self, parent: Any) -> bool:
        return is_delivering(parent)

    def start(self, parent: Any) -> None:
        require_writable_server()
        threading.Thread(target=self._keep_looking, name="look", daemon=True).start()

    def stop(self, parent: Any) -> None:
        _stopping.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    terminate = stop

    def _keep_looking(self) -> None:
        while not _stopping.wait(LOOK_EVERY_S):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001  # PostgreSQL may be away, and comes back.
                if not _stopping.is_set():
                    _log.warning("upkeep_failed", work="deliveries", **logs.kind_of(error))

    def _look(self) -> None:
        with transaction() as connection:
            due = cursors.due(connection)
        for webhook_id in due:
            if webhook_id not in self._under_way:
                self._under_way.add(webhook_id)
                self._threads.submit(self._deliver, webhook_id)
        self._looks += 1
        if self._looks % _DROP_EVERY_LOOKS == 0:
            self._drop_old_deliveries()

    def _deliver(self, webhook_id: int) -> None:
        try:
            _deliver(webhook_id)
        except Exception as error:  # noqa: BLE001  # As above.
            _log.warning("upkeep_failed", work="delivery", **logs.kind_of(error))
        finally:
            self._under_way.discard(webhook_id)

    @staticmethod
    def _drop_old_deliveries() -> None:
        step = partial(cursors.drop_old_deliveries, at_most=_DROP_STEP)
        steps(step, steps_max=_DROP_STEPS_MAX, full=_DROP_STEP)


def is_delivering(parent: Any) -> bool:
    """Tell whether a worker takes the queue of deliveries."""
    return DELIVERIES in parent.app.amqp.queues.consume_from


celery.steps["worker"].add(Look)
