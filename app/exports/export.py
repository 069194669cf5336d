"""An export: all rows of a list that match, as bytes, piece by piece, and a last line by which it is known as whole."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, text

from app.batches.schedule import now_of
from app.errors import OutOfReach, Refused
from app.exports import sources
from app.exports.columns import SUMMED, Lines, Writing
from app.exports.sources import MOMENTS, TABLES, Source, position_of
from app.pages.filters import CursorPosition, Filters
from app.pages.transaction_pages import with_addresses_of_user
from app.postgres.database import copied, transaction
from app.postgres.locks import outlast_writers
from app.postgres.standby import long_read
from app.scope import Scope

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
            with turn():
                lines, self._position = long_read(
                    self._next_piece
                )  # In a transaction each: a slow reader holds nothing.
            if self._position is None:
                self._source = None
            if lines is not None:
                self.rows, self.last_id = self.rows + lines.rows, lines.last_id
                self.sums = {name: self.sums[name] + more for name, more in zip(self.sums, lines.sums, strict=True)}
                yield lines.content
        yield self._writing.last_line(self.rows, self.sums, after=self.after)

    def _next_piece(self, connection: Connection) -> tuple[Lines | None, CursorPosition | None]:
        """Read the piece behind the position, and where it ends; None: it is the last.

        It notes nothing, for it may be begun anew on another server.
        """
        source = self._source
        assert source is not None, "behind the last piece there is none"
        piece = source.piece(connection, self._position)
        if piece is None:
            return None, None
        query, options = self._writing.copy(piece.statement)
        lines = self._writing.read(copied(connection, query, options, piece.parameters))
        end = piece.end
        if end is None and lines is not None and lines.rows >= sources.PIECE_ROWS:
            end = position_of(connection, source.kind, lines.last_id, source.filters)
        return lines, end


def begin(kind: str, form: str, filters: Filters, *, after: int | None = None) -> Export:
    """Begin an export of a list, in one of `FORMS`.

    Args:
        after: the id of the row that it goes on from, the last of an earlier export with the same filters.

    Raises:
        NotFound: the organization has no such row in this mode.
        Refused: what came since that row may stand before it.
        Unsettled: some transaction that writes to the list does not end.
    """
    writing, scope = Writing(kind=kind, form=form), Scope(filters.organization_id, sandbox=filters.sandbox)
    with transaction() as connection:  # On the primary: only there are the locks of those who write.
        start = None if after is None else position_of(connection, kind, after, filters)
        if start is not None and start.moment is not None and start.moment > now_of(connection, scope):
            raise Refused(_BEFORE_IT)
        wanted = None if filters.contradict_themselves else with_addresses_of_user(connection, filters)
        if wanted is None:
            return Export(writing, None, start)
        until = settled_until(connection, kind, scope)
    created_to = until if wanted.created_to is None else min(wanted.created_to, until)
    return Export(writing, Source(kind=kind, filters=replace(wanted, created_to=created_to)), start)


_BEFORE_IT = (
    "The row to go on from has a time that is still to come, since a clock was put back: what came later may stand"
    " before it. Export everything again, without after."
)


class Unsettled(OutOfReach):
    """Some transaction that writes to a list does not end."""

    says = "Something has been writing to this list for too long, so its end is not known. Try again in a minute."


def settled_until(connection: Connection, kind: str, scope: Scope) -> datetime:
    """Return the time of the end of a list: all that callers may have seen of it is there by now, and is not later.

    A row has its time before its transaction commits, so a row that is older than those already seen may still come.
    Where a clock was put back, rows are later than it: then the end is the last of them.

    Raises:
        Unsettled: who writes to the table does not end.
    """
    last = f"SELECT max({MOMENTS[kind]}) FROM {TABLES[kind]} WHERE organization_id = :organization_id"
    newest = connection.execute(text(f"{last} AND sandbox = :sandbox"), scope._asdict()).scalar_one()
    now = now_of(connection, scope)
    if not outlast_writers(connection, [TABLES[kind]]):
        raise Unsettled
    return now if newest is None else max(now, newest)
