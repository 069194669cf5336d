"""A consumer of events: each event is handled once, even if it is delivered several times."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

from points_client._async.client import AsyncPoints
from points_client.errors import Invalid, PointsError
from points_client.event import Event, EventPage, is_asked_for

T = TypeVar("T")


class AsyncConsumer(Generic[T]):
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
        points: AsyncPoints,
        *,
        transaction: Callable[[], AbstractAsyncContextManager[T]],
        load: Callable[[T], Awaitable[int]],
        handle: Callable[[T, Event], Awaitable[object]],
        store: Callable[[T, int], Awaitable[object]],
        types: Sequence[str] | None = None,
    ) -> None:
        self._points, self._types = points, types
        self._organization_id: int | None = None
        self._transaction, self._load, self._handle, self._store = transaction, load, handle, store

    async def run(self) -> None:
        """Follow the log without end, from the stored sequence on.

        Raises:
            NoAnswer: the service was out of reach for longer than `patience_s`: run it again.
            Gone: the stored sequence is older than what the service keeps.
        """
        async for page in self._points.events.pages(after=await self._stored() or None, types=self._types, follow=True):
            await self._take_page(page)

    async def catch_up(self) -> int:
        """Handle all events until now, and return how many there were."""
        handled = 0
        async for page in self._points.events.pages(after=await self._stored() or None, types=self._types):
            handled += await self._take_page(page)
        return handled

    async def take(self, event: Event) -> bool:
        """Handle one event, as `verify_webhook` returns it; False: it was handled before, or is not of `types`.

        What lies between the stored sequence and this event is fetched and handled first.

        Raises:
            Invalid: the event is of another organization or mode than the key of `points`.
            PointsError: events before it cannot be fetched, so it is not handled either.
        """
        await self._check_log(event)
        stored = await self._stored()
        while stored < event.sequence - 1:
            page = await self._points.events.page(after=stored or None, types=self._types)
            before = tuple(one for one in page.events if one.sequence < event.sequence)
            looked_to = min(page.last_sequence, event.sequence - 1)
            if looked_to <= stored:
                raise PointsError(f"The log ends at {page.last_sequence}, before the event {event.sequence}.")
            await self._take_page(EventPage(after=stored, events=before, last_sequence=looked_to))
            stored = max(looked_to, await self._stored())
        events = (event,) if is_asked_for(event, self._types) else ()
        page = EventPage(after=event.sequence - 1, events=events, last_sequence=event.sequence)
        return await self._take_page(page) == 1

    async def _take_page(self, page: EventPage) -> int:
        """Handle the events of a page, and store how far the log was looked through; return how many were handled."""
        handled, place = 0, page.after
        for event in page.events:
            handled += await self._move(place, event.sequence, event)
            place = event.sequence
        await self._move(place, page.last_sequence, None)
        return handled

    async def _move(self, place: int, to: int, event: Event | None) -> bool:
        """Move the stored sequence from `place`, or beyond, on to `to`, and handle the event that is there."""
        if to <= place:
            return False
        async with self._transaction() as transaction:
            stored = await self._load(transaction)
            if to <= stored:
                return False
            if stored < place:
                raise PointsError(f"The stored sequence went back from {place} to {stored}: start the consumer again.")
            if event is not None:
                await self._handle(transaction, event)
            await self._store(transaction, to)
        return True

    async def _check_log(self, event: Event) -> None:
        if self._organization_id is None:
            self._organization_id = (await self._points.organization()).id
        seen = (event.organization.get("id"), event.sandbox)
        if seen != (self._organization_id, self._points.sandbox):
            raise Invalid(f"The event {event.id} is of another organization or mode than the key: it is not handled.")

    async def _stored(self) -> int:
        async with self._transaction() as transaction:
            return await self._load(transaction)
