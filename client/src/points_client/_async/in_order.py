"""Calls that run at the same time, whose results come in order. Threads and tasks share no code, so this is the only
file that `_sync` has its own version of.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

R = TypeVar("R")


async def in_order(calls: Iterable[Callable[[], Coroutine[Any, Any, R]]], *, at_most: int) -> AsyncIterator[R]:
    """Yield each call's result, in order, while up to `at_most` calls run. Stopping early cancels the running calls."""
    running: deque[asyncio.Task[R]] = deque()
    try:
        for call in calls:
            running.append(asyncio.create_task(call()))
            if len(running) == at_most:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
