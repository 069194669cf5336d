"""Lists that go on over all pages."""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from points_client._async.calling import AsyncCaller
from points_client.answers import Answer
from points_client.reading import read
from points_client.requests import Call

T = TypeVar("T")


async def rows(caller: AsyncCaller, kind: type[T], path: str, name: str, query: Mapping[str, str]) -> AsyncIterator[T]:
    """Yield each row of the list `name`, page by page. A page may be short or empty and still have a next one."""
    cursor: dict[str, str] = {}
    while True:
        page, next_cursor = await caller.call(
            Call(method="GET", path=path, query={**query, **cursor}), partial(_page, kind, name)
        )
        for row in page:
            yield row
        if next_cursor is None:
            return
        cursor = {"cursor": next_cursor}


def _page(kind: type[T], name: str, answer: Answer) -> tuple[Sequence[T], str | None]:
    next_cursor: Any = answer.data["next_cursor"]
    if not isinstance(next_cursor, str | None):
        raise TypeError("next_cursor is no string.")
    return [read(kind, row) for row in answer.data[name]], next_cursor
