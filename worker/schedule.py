"""How beat sends what is due: `app.queue` says what that is, and by which clock."""

from typing import Any

from celery.beat import ScheduleEntry, Scheduler

from app import logs
from app.queue import SCHEDULED_QUEUE

# While no worker takes them, no more scheduled messages than this wait. They are not given a time to expire
# instead: beat's clock would say when that is, and a worker's clock, perhaps an hour off, whether it has passed.
SCHEDULED_WAITING_MAX = 10

_log = logs.logger()


class SteadyScheduler(Scheduler):  # type: ignore[misc]  # Celery ships no types.
    """Keeps the schedule in memory, and sends a message only while few of its kind wait for a worker.

    A schedule on disk remembers when it last ran, and after its clock was set back by an hour, beat
    would wait that hour for the next sweep.
    """

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send what is due, or leave it out: it will be due again."""
        try:
            waiting = self._waiting()
        except Exception as error:  # noqa: BLE001  # Whatever the broker's driver raises, beat must go on.
            _log.warning("not_scheduled", task=entry.task, **logs.kind_of(error))
            return
        if waiting < SCHEDULED_WAITING_MAX:
            super().apply_entry(entry, producer)

    def _waiting(self) -> int:
        """Return how many scheduled messages no worker has taken."""
        # A connection of its own, which is not waited for: it must work again as soon as the broker does.
        with self.app.connection_for_read() as connection, connection.channel() as channel:
            return int(self.app.amqp.queues[SCHEDULED_QUEUE](channel).queue_declare().message_count)
