"""Mail to members: a delivering worker looks once a second for what is due, and hands it to the SMTP server.

It has a thread of its own beside those of the deliveries (`worker.deliveries`), so that no webhook waits for a server
that is slow. What is due is in PostgreSQL, and no broker is needed.
"""

import threading
from typing import Any

from celery import bootsteps

from app import logs
from app.mail import sending
from app.messaging.jobs import celery
from app.messaging.worker_counters import MAILS, count
from app.settings import settings
from worker.deliveries import is_delivering

_LOOK_EVERY_S = 1.0

_log = logs.logger()


class SendMail(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery ships no types.
    """Sends mail in a thread, as long as the worker runs."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        self._stopping = threading.Event()
        super().__init__(parent, **options)

    def include_if(self, parent: Any) -> bool:
        return is_delivering(parent) and settings().has_mail

    def start(self, parent: Any) -> None:
        threading.Thread(target=self._keep_looking, name="mail", daemon=True).start()

    def stop(self, parent: Any) -> None:
        self._stopping.set()

    terminate = stop

    def _keep_looking(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY_S):
            try:
                sending.send_due(
                    tell=lambda outcome: count({MAILS.field(outcome): 1}), is_stopping=self._stopping.is_set
                )
            except Exception as error:  # noqa: BLE001  # PostgreSQL may be away, and comes back.
                if not self._stopping.is_set():
                    _log.warning("upkeep_failed", work="mail", **logs.kind_of(error))


celery.steps["worker"].add(SendMail)
