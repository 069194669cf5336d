"""Calls that run at the same time, whose results come in order, and calls that end in time. Threads and tasks share no
code, so this is the only file that `_sync` has its own version of.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

import httpx

R = TypeVar("R")


async def each(items: Iterable[R] | AsyncIterable[R]) -> AsyncIterator[R]:
    """Yield the items of either kind of iterable."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def within(seconds: float | None, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Return what a call returns, if it ends in time: httpx only bounds the time between two bytes.

    Raises:
        httpx.ReadTimeout: it does not.
    """
    try:
        async with asyncio.timeout(seconds):
            return await call()
    except TimeoutError:
        raise httpx.ReadTimeout(f"no whole answer within {seconds:.0f} s") from None


async def in_order(calls: AsyncIterator[Callable[[], Coroutine[Any, Any, R]]], *, at_most: int) -> AsyncIterator[R]:
    """Yield each call's result, in order, while up to `at_most` calls run. Stopping early cancels the running calls.

    If `calls` itself raises, the results of the calls before it come first.
    """
    running: deque[asyncio.Task[R]] = deque()
    fault: Exception | None = None
    try:
        while fault is None:
            try:
                running.append(asyncio.create_task((await anext(calls))()))
            except StopAsyncIteration:
                break
            except Exception as error:  # noqa: BLE001  # It is raised below.
                fault = error
            if len(running) == at_most:
                yield await running.popleft()
        while running:
            yield await running.popleft()
        if fault is not None:
            raise fault
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
