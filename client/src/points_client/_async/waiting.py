"""Waiting until something is final."""

import time
from asyncio import sleep
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar


class MayBeFinal(Protocol):
    """A batch or a reversal."""

    @property
    def final(self) -> bool: ...


T = TypeVar("T", bound=MayBeFinal)


async def until_final(look: Callable[[], Awaitable[T]], *, wait_s: float) -> T:
    """Look about once a second until it is final or the time is over; return what was seen last."""
    ends_at = time.monotonic() + wait_s
    while True:
        seen = await look()
        left_s = ends_at - time.monotonic()
        if seen.final or left_s <= 0:
            return seen
        await sleep(min(1.0, left_s))
