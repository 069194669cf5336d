"""A consumer of events: each event is handled once, even if it is delivered several times."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from points_client._sync.client import Points
from points_client.errors import Invalid, PointsError
from points_client.event import Event, EventPage, is_asked_for

T = TypeVar("T")


class Consumer(Generic[T]):
    """Handles events, each in a transaction of your own database, which also keeps the `sequence` of the last one.

    Args:
        points: where the events come from.
        transaction: opens a transaction; it commits at the end of the block, and rolls back when the block raises.
        load: returns the stored sequence, 0 at first. Lock its row (`SELECT … FOR UPDATE`), so that several processes
            may consume the same events.
        handle: handles the event, in the transaction and nowhere else.
        store: stores the sequence in the transaction, also without an event: the log was looked through up to it.
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
        self._organization_id: int | None = None
        self._transaction, self._load, self._handle, self._store = transaction, load, handle, store

    def run(self) -> None:
        """Follow the log without end, from the stored sequence on.

        Raises:
            NoAnswer: the service was out of reach for longer than `patience_s`: run it again.
            Gone: the stored sequence is older than what the service keeps.
        """
        for page in self._points.events.pages(after=self._stored() or None, types=self._types, follow=True):
            self._take_page(page)

    def catch_up(self) -> int:
        """Handle all events until now, and return how many there were."""
        handled = 0
        for page in self._points.events.pages(after=self._stored() or None, types=self._types):
            handled += self._take_page(page)
        return handled

    def take(self, event: Event) -> bool:
        """Handle one event, as `verify_webhook` returns it; False: it was handled before, or is not of `types`.

        What lies between the stored sequence and this event is fetched and handled first.

        Raises:
            Invalid: the event is of another organization or mode than the key of `points`.
            PointsError: events before it cannot be fetched, so it is not handled either.
        """
        self._check_log(event)
        stored = self._stored()
        while stored < event.sequence - 1:
            page = self._points.events.page(after=stored or None, types=self._types)
            before = tuple(one for one in page.events if one.sequence < event.sequence)
            looked_to = min(page.last_sequence, event.sequence - 1)
            if looked_to <= stored:
                raise PointsError(f"The log ends at {page.last_sequence}, before the event {event.sequence}.")
            self._take_page(EventPage(after=stored, events=before, last_sequence=looked_to))
            stored = max(looked_to, self._stored())
        events = (event,) if is_asked_for(event, self._types) else ()
        page = EventPage(after=event.sequence - 1, events=events, last_sequence=event.sequence)
        return self._take_page(page) == 1

    def _take_page(self, page: EventPage) -> int:
        """Handle the events of a page, and store how far the log was looked through; return how many were handled."""
        handled, place = 0, page.after
        for event in page.events:
            handled += self._move(place, event.sequence, event)
            place = event.sequence
        self._move(place, page.last_sequence, None)
        return handled

    def _move(self, place: int, to: int, event: Event | None) -> bool:
        """Move the stored sequence from `place`, or beyond, on to `to`, and handle the event that is there."""
        if to <= place:
            return False
        with self._transaction() as transaction:
            stored = self._load(transaction)
            if to <= stored:
                return False
            if stored < place:
                raise PointsError(f"The stored sequence went back from {place} to {stored}: start the consumer again.")
            if event is not None:
                self._handle(transaction, event)
            self._store(transaction, to)
        return True

    def _check_log(self, event: Event) -> None:
        if self._organization_id is None:
            self._organization_id = (self._points.organization()).id
        seen = (event.organization.get("id"), event.sandbox)
        if seen != (self._organization_id, self._points.sandbox):
            raise Invalid(f"The event {event.id} is of another organization or mode than the key: it is not handled.")

    def _stored(self) -> int:
        with self._transaction() as transaction:
            return self._load(transaction)
