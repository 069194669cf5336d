"""A log of events: of an organization, in the key's mode; or of the platform."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from time import sleep

from points_client._sync.calling import Caller
from points_client.attempts import Clock
from points_client.errors import NoAnswer
from points_client.event import Event, EventPage, read_page
from points_client.requests import Call, listed, query

_WAIT_S = 25  # The longest time that the service holds a call.


class Events:
    """`points.events` and `platform.events`."""

    def __init__(self, caller: Caller, where: str = "/v1/events", *, rare: str = "ping") -> None:
        self._caller, self._where, self._rare = caller, where, rare

    def list(
        self, *, after: int | None = None, types: Sequence[str] | None = None, page_size: int = 100
    ) -> Iterator[Event]:
        """Yield the events after a sequence, oldest first, up to the present last one; `types` such as `batch.*`.

        `after` None begins with the oldest event that is kept.

        Raises:
            Gone: events after `after` are no longer kept (`events_expired`); the sentence names the oldest.
        """
        for page in self.pages(after=after, types=types, page_size=page_size):
            for event in page.events:
                yield event

    def last_sequence(self, *, types: Sequence[str] | None = None) -> int:
        """Return the sequence of the last event. Follow after it to get only new events.

        A platform key that may not read all types must name here, as in each call, those that it may.
        """
        looked_to = 0
        # With a rare type, each call looks through thousands of events.
        for page in self.pages(types=types or (self._rare,), page_size=1000):
            looked_to = page.last_sequence
        return looked_to

    def follow(self, *, after: int, types: Sequence[str] | None = None) -> Iterator[Event]:
        """Yield the events after a sequence as they happen, without end. After a break, go on after the last one seen.

        The service holds each call until there is an event. It holds only two calls of a key at the same time; if there
        are more, this method asks once a second.

        Raises:
            NoAnswer: the service was out of reach for longer than `patience_s`.
            Gone: events after `after` are no longer kept (`events_expired`); the sentence names the oldest.
        """
        for page in self.pages(after=after, types=types, follow=True):
            for event in page.events:
                yield event

    def pages(
        self,
        *,
        after: int | None = None,
        types: Sequence[str] | None = None,
        page_size: int = 100,
        follow: bool = False,
    ) -> Iterator[EventPage]:
        """Yield the events page by page, each with how far the log was looked through; `follow`: without end."""
        wait_s = _WAIT_S if follow else 0
        while True:
            asked_at = time.monotonic()
            try:
                page = self._page(after, types, page_size, wait_s, Clock(0) if follow else None)
            except NoAnswer:
                if not follow:
                    raise
                # Some gateways end a quiet call before we do: that is no outage. If it is one, the next call says so.
                held_s = int(time.monotonic() - asked_at)
                wait_s = max(2, min(wait_s, held_s * 2 // 3)) if held_s > 1 else wait_s
                page = self._page(after, types, page_size, 0, None)
            yield page
            is_end = not page.events and page.last_sequence == (after or 0)
            if is_end and not follow:
                return
            if follow and not page.events and time.monotonic() - asked_at < 1:
                sleep(1)
            after = page.last_sequence

    def page(
        self,
        *,
        after: int | None = None,
        types: Sequence[str] | None = None,
        page_size: int = 100,
        wait_s: int = 0,
    ) -> EventPage:
        """Return the next events, and how far the log was looked through; `wait_s`, at most 25: wait for the first."""
        return self._page(after, types, page_size, wait_s, None)

    def _page(
        self, after: int | None, types: Sequence[str] | None, limit: int, wait_s: int, clock: Clock | None
    ) -> EventPage:
        asked = query(after=after, types=listed("types", types), limit=limit, wait=wait_s or None)
        call = Call(method="GET", path=self._where, query=asked)
        return self._caller.call(call, partial(read_page, after or 0), clock)
