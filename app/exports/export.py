"""An export: all rows of a list that match, as bytes, piece by piece, and a last line by which it is known as whole."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from sqlalchemy import Connection

from app.exports import sources
from app.exports.columns import SUMMED, Writing
from app.exports.settled import settled_until
from app.exports.sources import TABLES, Source, position_of
from app.pages.filters import CursorPosition, Filters
from app.pages.transaction_pages import with_address_of_user
from app.postgres.database import copied, transaction

# What each piece is read within.
Turn = Callable[[], AbstractContextManager[object]]


class Export:
    """An export that was begun: it holds what is older than that.

    `rows`, `sums` (by column) and `last_id` are those of what `content` has yielded so far; `last_id` is that of the
    last row, or `after`.
    """

    def __init__(self, writing: Writing, source: Source | None, start: CursorPosition | None) -> None:
        self.rows = 0
        self.sums = dict.fromkeys(SUMMED[writing.kind], 0)
        self.after = self.last_id = None if start is None else start.id
        self._writing = writing
        self._source = source
        self._position = start

    def content(self, turn: Turn = nullcontext) -> Iterator[bytes]:
        """Yield it: the heading, unless it goes on from a row; the rows, in pieces of whole lines; the last line."""
        heading = self._writing.heading()
        if self.after is None and heading:
            yield heading
        while self._source is not None:
            with turn(), transaction() as connection:  # One for each piece: a slow reader holds nothing.
                piece = self._next_piece(connection, self._source)
            if piece:
                yield piece
        yield self._writing.last_line(self.rows, self.sums, after=self.after)

    def _next_piece(self, connection: Connection, source: Source) -> bytes:
        """Read a piece, and note it; behind the last one there is no source any more."""
        piece = source.piece(connection, self._position)
        if piece is None:
            self._source = None
            return b""
        query, options = self._writing.copy(piece.statement)
        found = self._writing.read(copied(connection, query, options, piece.parameters))
        if found is not None:
            self.rows, self.last_id = self.rows + found.rows, found.last_id
            self.sums = {name: self.sums[name] + more for name, more in zip(self.sums, found.sums, strict=True)}
        if piece.end is not None:
            self._position = piece.end
        elif found is None or found.rows < sources.PIECE_ROWS:
            self._source = None
        else:
            self._position = position_of(connection, source.kind, found.last_id, source.filters)
        return b"" if found is None else found.content


def begin(kind: str, form: str, filters: Filters, *, after: int | None = None) -> Export:
    """Begin an export of a list, in one of `FORMS`.

    Args:
        after: the id of the row that it goes on from, the last of an earlier export with the same filters.

    Raises:
        NotFound: the organization has no such row in this mode.
        Unsettled: some transaction that writes to the list does not end.
    """
    writing = Writing(kind=kind, form=form)
    with transaction() as connection:
        start = None if after is None else position_of(connection, kind, after, filters)
        wanted = None if filters.contradict_themselves else with_address_of_user(connection, filters)
        if wanted is None:
            return Export(writing, None, start)
        until = settled_until(connection, TABLES[kind], filters.organization_id, sandbox=filters.sandbox)
    created_to = until if wanted.created_to is None else min(wanted.created_to, until)
    return Export(writing, Source(kind=kind, filters=replace(wanted, created_to=created_to)), start)
