"""How beat sends what is due: `app.queue` says what that is, and by which clock."""

from typing import Any

from celery.beat import ScheduleEntry, Scheduler, SchedulingError

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

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._left_out: dict[str, ScheduleEntry] = {}
        super().__init__(*arguments, **named)

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send what is due, and then what was left out: that is not due again until its time has passed anew.

        So the first that can be sent, seconds after the broker or a worker is back, brings the others along, also
        those of once an hour.
        """
        if not self._send(entry, producer):
            self._left_out[entry.name] = entry
            return
        self._left_out.pop(entry.name, None)
        for other in list(self._left_out.values()):
            if not self._send(other, producer):
                return
            del self._left_out[other.name]

    def _send(self, entry: ScheduleEntry, producer: Any) -> bool:
        """Send one message, unless many wait already; tell whether it was sent."""
        try:
            if self._waiting() >= SCHEDULED_WAITING_MAX:
                return False
            self.apply_async(entry, producer=producer, advance=False)
        except Exception as error:  # noqa: BLE001  # Whatever the broker's driver raises, beat must go on.
            cause = error.__context__ if isinstance(error, SchedulingError) and error.__context__ else error
            _log.warning("not_scheduled", task=entry.task, **logs.kind_of(cause))
            return False
        return True

    def _waiting(self) -> int:
        """Return how many scheduled messages no worker has taken."""
        # A connection of its own, which is not waited for: it must work again as soon as the broker does.
        with self.app.connection_for_read() as connection, connection.channel() as channel:
            return int(self.app.amqp.queues[SCHEDULED_QUEUE](channel).queue_declare().message_count)
