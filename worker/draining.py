"""A drain, for a task or a sweep, that tells the fronts of each round and numbers its events."""

import time
from collections import deque
from collections.abc import Callable, Sequence

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from structlog.contextvars import bind_contextvars

from app import logs
from app.events.sequencer import NUMBERED_MAX, number_events
from app.ledger.drain import drain
from app.messaging import hints
from app.messaging.jobs import submit
from app.messaging.requests import Request, Staying, need_message, note_arrival
from app.messaging.worker_counters import Counts
from app.postgres.database import transaction

# After this time a job ends, so that Flower shows it and the broker may give this process another task.
_TURN_S = 2.0

_log = logs.logger()


def drain_and_stay(organization_id: int, request_id: str | None = None) -> list[int]:
    """Drain an organization's queue, then stay for the drains that fronts ask for; return the batches that are final.

    A worker that stays belongs to no organization: whoever asks while a drain goes on is served after its round, and
    the rest of that drain after that.

    Raises:
        DBAPIError, TimeoutError: no connection can be made. What was not committed is still queued.
    """
    request = Request(organization_id, request_id)
    note_arrival(request)
    turn = _Turn(request)
    try:
        turn.work()
    finally:
        for one in need_message(turn.leave(), are_noted=True):
            submit(one.organization_id, request_id=one.request_id)
    turn.number()
    return turn.final


class _Turn:
    """What one job does: the drain that it is for, and those that fronts ask for meanwhile."""

    def __init__(self, request: Request) -> None:
        self._staying = Staying()
        self._now = request
        self._to_do = deque([request])
        self._to_number: set[int] = set()
        self.final: list[int] = []

    def work(self) -> None:
        """Drain until nobody asks, or the turn is over."""
        ends = time.monotonic() + _TURN_S
        while self._to_do:
            self._drain(self._to_do.popleft())
            left_s = ends - time.monotonic()
            if left_s <= 0:
                return
            if not self._to_do and (asked := self._staying.wait(at_most_s=left_s, when_idle=self.number)):
                self._to_do.append(asked)

    def leave(self) -> list[Request]:
        """Stay no longer; return what is left to do."""
        asked = self._staying.withdraw()
        return [*self._to_do, *([asked] if asked else [])]

    def number(self) -> None:
        """Number what was drained. While many ask, this waits, and the upkeep numbers, half a second later at most."""
        while self._to_number:
            _number_unless_failing(self._to_number.pop())

    def _drain(self, request: Request) -> None:
        self._now = request
        if request.request_id:
            bind_contextvars(request_id=request.request_id)
        final, has_more = _drain_and_hint(request.organization_id, self._staying, self._is_asked)
        if final:
            self.final += final
            self._to_number.add(request.organization_id)
        if has_more:
            self._to_do.append(request)

    def _is_asked(self) -> bool:
        """Tell whether a front has asked for another organization's drain."""
        asked = self._staying.withdraw()
        if asked is None or asked.organization_id == self._now.organization_id:
            return False
        self._to_do.append(asked)
        return True


def drain_and_tell(organization_id: int) -> tuple[list[int], bool]:
    """Drain an organization's queue; return the ids of the batches that are final now, and whether more may wait.

    Raises:
        DBAPIError, TimeoutError: no connection can be made. What was not committed is still queued.
    """
    final, has_more = _drain_and_hint(organization_id)
    if final:
        _number_unless_failing(organization_id)
    return final, has_more


def _drain_and_hint(
    organization_id: int, staying: Staying | None = None, is_asked: Callable[[], bool] = lambda: False
) -> tuple[list[int], bool]:
    final: list[int] = []

    def tell(batch_ids: Sequence[int], counts: Counts) -> None:
        final.extend(batch_ids)
        hints.publish(organization_id, batch_ids, counts, staying)

    return final, drain(organization_id, announce=tell, is_asked=is_asked)


def _number_unless_failing(organization_id: int) -> None:
    """Number the drain's events. An error does not fail the drain: the upkeep numbers the events that are left."""
    try:
        number(organization_id)
    except (DBAPIError, PoolTimeout) as error:
        _log.warning("events_not_numbered", organization_id=organization_id, **logs.kind_of(error))


def number(organization_id: int) -> None:
    """Number the organization's events, unless another process does: it, or the upkeep after it, numbers these too.

    Raises:
        DBAPIError, TimeoutError: PostgreSQL is out of reach.
    """
    while True:
        with transaction() as connection:
            numbered = number_events(connection, organization_id)
        if numbered < NUMBERED_MAX:
            return
