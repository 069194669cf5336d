"""Lists that go on over all pages."""

from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

from points_client._async.calling import AsyncCaller, result

T = TypeVar("T")


async def rows(caller: AsyncCaller, kind: type[T], path: str, name: str, query: Mapping[str, str]) -> AsyncIterator[T]:
    """Yield each row of the list `name`, page by page. A page may be short or empty and still have a next one."""
    cursor: dict[str, str] = {}
    while True:
        answer = await caller.call("GET", path, query={**query, **cursor})
        for row in answer.part(name):
            yield result(kind, row)
        if answer.part("next_cursor") is None:
            return
        cursor = {"cursor": answer.part("next_cursor")}
