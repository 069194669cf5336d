"""A consumer of events: each event is handled once, even if it is delivered several times."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from points_client._sync.client import Points
from points_client.event_results import Event

T = TypeVar("T")


class Consumer(Generic[T]):
    """Handles events, each in a transaction of your own database, which also keeps the `sequence` of the last one.

    Args:
        points: where the events come from.
        transaction: opens a transaction; it commits at the end of the block, and rolls back when the block raises.
        load: returns the stored sequence, 0 at first. Lock its row (`SELECT … FOR UPDATE`), so that several processes
            may consume the same events.
        handle: handles the event, in the transaction and nowhere else.
        store: stores the sequence in the transaction.
        types: the types of events to handle, such as `("batch.*",)`; None: all.

    After a crash at any moment, an event is either handled and its sequence stored, or neither.
    """

    def __init__(
        self,
        points: Points,
        *,
        transaction: Callable[[], AbstractContextManager[T]],
        load: Callable[[T], int],
        handle: Callable[[T, Event], object],
        store: Callable[[T, int], object],
        types: Sequence[str] | None = None,
    ) -> None:
        self._points, self._types = points, types
        self._transaction, self._load, self._handle, self._store = transaction, load, handle, store

    def run(self) -> None:
        """Follow the log without end, from the stored sequence on.

        Raises:
            NoAnswer: the service was out of reach for longer than `patience_s`: run it again.
            Invalid: the stored sequence is older than what the service keeps.
        """
        for event in self._points.events.follow(after=self._stored(), types=self._types):
            self.take(event)

    def catch_up(self) -> int:
        """Handle all events until now, and return how many there were."""
        handled = 0
        for event in self._points.events.list(after=self._stored(), types=self._types):
            handled += self.take(event)
        return handled

    def take(self, event: Event) -> bool:
        """Handle one event, as `verify_webhook` returns it; False: it was handled before."""
        with self._transaction() as transaction:
            if event.sequence <= self._load(transaction):
                return False
            self._handle(transaction, event)
            self._store(transaction, event.sequence)
        return True

    def _stored(self) -> int:
        with self._transaction() as transaction:
            return self._load(transaction)
