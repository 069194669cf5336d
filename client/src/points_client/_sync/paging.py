"""Lists that go on over all pages."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from points_client._sync.calling import Caller, result

T = TypeVar("T")


def rows(caller: Caller, kind: type[T], path: str, name: str, query: Mapping[str, str]) -> Iterator[T]:
    """Yield each row of the list `name`, page by page. A page may be short or empty and still have a next one."""
    cursor: dict[str, str] = {}
    while True:
        answer = caller.call("GET", path, query={**query, **cursor})
        for row in answer.part(name):
            yield result(kind, row)
        if answer.part("next_cursor") is None:
            return
        cursor = {"cursor": answer.part("next_cursor")}
