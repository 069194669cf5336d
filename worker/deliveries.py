"""Deliveries to webhooks: a delivering worker looks four times a second for what is due, and calls the receivers.

It is a Celery worker (`--queues deliveries --pool threads`) so that it has a name, answers pings, is listed in Flower
and stops as the others do. It gets no message and needs no broker: what is due is in PostgreSQL. It does not fork.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from celery import bootsteps
from celery.signals import worker_shutting_down

from app import logs
from app.messaging.jobs import DELIVERIES, celery
from app.messaging.worker_counters import WEBHOOK_ATTEMPTS, count
from app.postgres.connections import require_writable_server
from app.postgres.database import single_statement, steps
from app.webhooks import attempts, cursors, delivery
from app.webhooks.attempts import Attempt
from app.webhooks.turns import Turns

LOOK_EVERY_S = 0.25
_DROP_EVERY_LOOKS = 240
_DROP_STEP = 1_000
_DROP_STEPS_MAX = 100

_stopping = threading.Event()
_log = logs.logger()


@worker_shutting_down.connect
def _stop(**_: Any) -> None:
    _stopping.set()


class Look(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery ships no types.
    """Looks for webhooks that have something to deliver, and delivers to each in a thread, in turns."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        self._threads = ThreadPoolExecutor(parent.concurrency, thread_name_prefix="deliveries")
        self._turns = Turns(parent.concurrency)
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
        with single_statement() as connection:
            due = cursors.due(connection)
        self._begin(self._turns.found(due))
        self._looks += 1
        if self._looks % _DROP_EVERY_LOOKS == 0:
            self._drop_old_deliveries()

    def _begin(self, webhook_ids: Sequence[int]) -> None:
        for webhook_id in webhook_ids:
            self._threads.submit(self._deliver, webhook_id)

    def _deliver(self, webhook_id: int) -> None:
        outcomes: Counter[str] = Counter()

        def tell(attempt: Attempt) -> None:
            outcomes[WEBHOOK_ATTEMPTS.field(attempt.error or "delivered")] += 1

        try:
            delivery.deliver(webhook_id, tell=tell, is_stopping=_stopping.is_set)
        except Exception as error:  # noqa: BLE001  # As above.
            _log.warning("upkeep_failed", work="delivery", **logs.kind_of(error))
        finally:
            with suppress(RuntimeError):  # It is stopping, and begins nothing more.
                self._begin(self._turns.ended(webhook_id))
        if outcomes:
            count(outcomes)

    @staticmethod
    def _drop_old_deliveries() -> None:
        step = partial(attempts.drop_old_deliveries, at_most=_DROP_STEP)
        steps(step, steps_max=_DROP_STEPS_MAX, full=_DROP_STEP)


def is_delivering(parent: Any) -> bool:
    """Tell whether a worker takes the queue of deliveries."""
    return DELIVERIES in parent.app.amqp.queues.consume_from


celery.steps["worker"].add(Look)
