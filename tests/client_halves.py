"""Both halves of the client by one parametrize: `AsyncPoints`, driven from outside, is called as `Points` is."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from typing import Any, Self, TypeVar, cast

import pytest

from points_client import AsyncConsumer, AsyncPlatformPoints, AsyncPoints, Consumer, PlatformPoints, Points

HALVES = ("sync", "async")
# Where the calls are slow: one half is made from the other.
SYNC_FIRST = ("sync", pytest.param("async", marks=pytest.mark.long))
T = TypeVar("T")


def points_of(half: str, key: str, url: str, **options: Any) -> Points:
    return Points(key, url, **options) if half == "sync" else cast(Points, Driven(AsyncPoints(key, url, **options)))


def platform_of(half: str, key: str, url: str, **options: Any) -> PlatformPoints:
    if half == "sync":
        return PlatformPoints(key, url, **options)
    return cast(PlatformPoints, Driven(AsyncPlatformPoints(key, url, **options)))


def consumer_of(points: Points, *, transaction: Callable[[], AbstractContextManager[T]], **options: Any) -> Consumer[T]:
    """Return a consumer; of a driven client an asynchronous one, of the same functions."""
    driven: object = points
    if not isinstance(driven, Driven):
        return Consumer(points, transaction=transaction, **options)

    @asynccontextmanager
    async def opened() -> AsyncIterator[T]:
        with transaction() as inside:
            yield inside

    def awaited(function: Any) -> Any:
        async def call(*arguments: Any) -> Any:
            return function(*arguments)

        return call

    options = {name: awaited(value) if callable(value) else value for name, value in options.items()}
    return cast("Consumer[T]", driven.beside(AsyncConsumer(driven.of, transaction=opened, **options)))


class Driven:
    """An asynchronous client, or a part of it. Any number of threads may call it: all calls run in one event loop."""

    def __init__(self, of: Any, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.of = of
        self._loop = loop or asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        if loop is None:
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self.of.close())
        self._run(self._loop.shutdown_asyncgens())  # Of events that somebody has followed and left.
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def beside(self, other: Any) -> "Driven":
        return Driven(other, self._loop)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.of, name)
        if type(found).__module__.startswith("points_client._async"):
            return self.beside(found)
        return partial(self._call, found) if callable(found) else found

    def _call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        made = function(*arguments, **named)
        if isinstance(made, AsyncIterator):
            return self._each(made)
        return self._run(made) if isinstance(made, Awaitable) else made

    def _each(self, found: AsyncIterator[T]) -> Iterator[T]:
        end = object()

        async def following() -> Any:
            return await anext(found, end)

        try:
            while (one := self._run(following())) is not end:
                yield one
        finally:
            if not self._loop.is_closed():
                self._run(found.aclose())  # type: ignore[attr-defined]  # All are generators.

    def _run(self, awaited: Awaitable[T]) -> T:
        async def call() -> T:
            return await awaited

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()
