"""Long lists on a terminal: the pages of a list, read one after the other."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from app.pages.filters import Page
from app.pages.parameters import LIMIT_MAX
from app.pages.queries import PageRequest
from app.postgres.database import transaction

_Row = TypeVar("_Row")


def rows_of(read_page: Callable[..., Page[_Row]], asked: PageRequest, *, at_most: int) -> Iterator[_Row]:
    """Yield the first rows of a list, each page of it read in a transaction of its own."""
    start, left = asked.start, at_most
    while left:
        with transaction() as connection:
            page = read_page(connection, asked.filters, start=start, limit=min(left, LIMIT_MAX))
        yield from page.rows
        start, left = page.next, left - len(page.rows)
        if start is None:
            return
