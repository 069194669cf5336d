"""The log of events of an organization, in the key's mode."""

import time
from asyncio import sleep
from collections.abc import AsyncIterator, Sequence

from points_client._async.calling import AsyncCaller, result
from points_client.event_results import Event
from points_client.requests import query

_WAIT_S = 25  # The longest time that the service holds a call.


class AsyncEvents:
    """`points.events`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(
        self, *, after: int | None = None, types: Sequence[str] | None = None, page_size: int = 100
    ) -> AsyncIterator[Event]:
        """Yield the events after a sequence, oldest first, up to the present last one; `types` such as `batch.*`.

        `after` None begins with the oldest event that is kept.

        Raises:
            Invalid: events after `after` are no longer kept; the sentence names the oldest.
        """
        while True:
            page, looked_to = await self._page(after, types, page_size, 0)
            for event in page:
                yield event
            if not page and looked_to == (after or 0):
                return
            after = looked_to

    async def last_sequence(self) -> int:
        """Return the sequence of the last event. Follow after it to get only new events."""
        after: int | None = None
        while True:  # With a rare type, each call looks through thousands of events.
            _, looked_to = await self._page(after, ("ping",), 1000, 0)
            if looked_to == (after or 0):
                return looked_to
            after = looked_to

    async def follow(self, *, after: int, types: Sequence[str] | None = None) -> AsyncIterator[Event]:
        """Yield the events after a sequence as they happen, without end. After a break, go on after the last one seen.

        The service holds each call until there is an event. It holds only two calls of a key at the same time; if there
        are more, this method asks once a second.

        Raises:
            NoAnswer: the service was out of reach for longer than `patience_s`.
            Invalid: events after `after` are no longer kept; the sentence names the oldest.
        """
        while True:
            asked_at = time.monotonic()
            page, after = await self._page(after, types, 100, _WAIT_S)
            for event in page:
                yield event
            if not page and time.monotonic() - asked_at < 1:
                await sleep(1)

    async def _page(
        self, after: int | None, types: Sequence[str] | None, limit: int, wait_s: int
    ) -> tuple[Sequence[Event], int]:
        """Return a page of events, and the sequence up to which the log was looked through."""
        names = None if types is None else ",".join(types)
        asked = query(after=after, types=names, limit=limit, wait=wait_s or None)
        answer = await self._caller.call("GET", "/v1/events", query=asked)
        page = [result(Event, {**event, "document": event}) for event in answer.part("events")]
        return page, answer.part("last_sequence")
