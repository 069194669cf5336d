"""The import of users from a list: streamed, committed in chunks, each bad row kept with its reason."""

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, NamedTuple, Self

from app import users
from app.cli.operator_command import by_operator
from app.cli.options import opened_list
from app.cli.tables import progress_bar
from app.errors import InvalidAddress, PointsError, Refused
from app.fields.field import FieldFault
from app.ledger.registering import EXTERNAL_ID, conflicts_of, firsts, register_in_steps
from app.recipient_files.cells import EMAIL, address_in, for_spreadsheet, from_spreadsheet
from app.recipient_files.list_file import ListFile
from app.recipient_files.rows import Row, Unreadable
from app.settings import settings
from app.values.numbers import points

CHUNK_ROWS = 20_000
_EXTERNAL_ID = "external_id"
_COLUMNS = {"email": EMAIL, **{name: (name,) for name in ("first_name", "last_name", _EXTERNAL_ID)}}


class BadRow(NamedTuple):
    line: int
    reason: str


class _Good(NamedTuple):
    """A row with the user that it names."""

    row: Row
    cells: Sequence[str]
    user: users.NewUser


@dataclass(kw_only=True)
class Imported:
    """The outcome of the rows; `errors_file` is where the bad ones were written, if any, `not_used` other columns."""

    registered: int = 0
    already_registered: int = 0
    bad_rows: list[BadRow] = field(default_factory=list)
    errors_file: str | None = None
    not_used: list[str] = field(default_factory=list)


def import_users(path: Path, *, sheet: str | None = None, hidden_rows: str | None = None) -> Imported:
    """Register the users of a file; of a workbook, `sheet` is the name or number of one, `hidden_rows` what becomes of
    those.

    Raises:
        Refused: it is not a list with the columns, or Ctrl-C came; what is committed stays.
    """
    counts = Imported()
    with path.open("rb") as raw, opened_list(raw, path.name, sheet, hidden_rows) as text, _Errors(path) as errors:
        file = ListFile(text)
        places = _places(file)
        errors.columns = list(places)
        counts.not_used = [file.title(place) for place in file.columns() if place not in places.values()]
        try:
            with progress_bar(f"Importing {file.name}", total=file.size_bytes) as advance_to:
                for chunk in _chunks(file, places, counts, errors):
                    _register(chunk, counts, errors)
                    advance_to(file.bytes_read)
        except KeyboardInterrupt:
            raise Refused(
                f"Interrupted: {points(counts.registered)} are registered. Give the command again to import the rest."
            ) from None
    counts.errors_file = errors.written
    counts.bad_rows.sort()
    return counts


def _register(chunk: Sequence[_Good], counts: Imported, errors: "_Errors") -> None:
    """Register users. If the list has their external ids, a row in conflict with a user is a bad one."""
    new, has_ids = [good.user for good in chunk], _EXTERNAL_ID in errors.columns
    counts.already_registered += len(new)
    for step in register_in_steps(list(firsts(new).values()) if has_ids else new, by=by_operator()):
        counts.registered += len(step.user_ids)
        counts.already_registered -= len(step.user_ids)
    for good, conflict in zip(chunk, conflicts_of(new) if has_ids else (), strict=False):
        if conflict is not None:
            counts.already_registered -= 1
            _leave_out(good.row, good.cells, conflict, counts, errors)


def _leave_out(row: Row, cells: Sequence[str], error: PointsError, counts: Imported, errors: "_Errors") -> None:
    reason = f"email {error.sentence}" if isinstance(error, InvalidAddress) else error.sentence
    # Interned, because a million bad rows share a few reasons; a `Fault` is more than a plain text.
    counts.bad_rows.append(BadRow(row.line, sys.intern(str(reason))))
    errors.write(row, reason, cells)


def _places(file: ListFile) -> dict[str, int]:
    """Find the columns: three, and that of the external ids if the list has it.

    Raises:
        Refused: the heading does not name all of them, or names any twice.
    """
    by_column = {column: file.places(names) for column, names in _COLUMNS.items()}
    if not by_column[_EXTERNAL_ID]:
        del by_column[_EXTERNAL_ID]
    if missing := [column for column, places in by_column.items() if not places]:
        raise Refused(
            f"{file.name} has no column {' and no column '.join(missing)}: its first line must name the columns"
            " email, first_name and last_name, in any order."
        )
    if twice := [column for column, places in by_column.items() if len(places) > 1]:
        raise Refused(f"{file.name} has the column {twice[0]} twice: remove one.")
    return {column: places[0] for column, places in by_column.items()}


def _chunks(file: ListFile, places: Mapping[str, int], counts: Imported, errors: "_Errors") -> Iterator[list[_Good]]:
    chunk: list[_Good] = []
    for row in _to_the_end(file.rows(*places.values())):
        cells = [row.cells[place] if place < len(row.cells) else "" for place in places.values()]
        try:
            chunk.append(_Good(row, cells, _new_user(row, cells, is_unicode=file.is_unicode)))
        except PointsError as error:
            _leave_out(row, cells, error, counts, errors)
        if len(chunk) == CHUNK_ROWS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _to_the_end(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows; if the rest of a file cannot be read, one row with a fault instead of it."""
    try:
        yield from rows
    except Unreadable as error:
        yield Row(error.line, [], f"and all that follow cannot be read: {error.reason}.")


def _new_user(row: Row, cells: Sequence[str], *, is_unicode: bool) -> users.NewUser:
    if row.fault is not None:
        raise Refused(f"The row {row.fault}")
    # An address keeps its apostrophe, and is refused: it may be the rest of something else.
    email, first_name, last_name, *ids = cells[0], *map(from_spreadsheet, cells[1:])
    user = users.new_user(address_in(email, is_unicode=is_unicode), first_name, last_name)
    if not any(ids):
        return user
    try:
        return replace(user, external_id=EXTERNAL_ID.check(ids[0], settings()))
    except FieldFault as fault:
        raise Refused(f"The external_id {fault}") from None


class _Errors:
    """`FILE.errors.csv`: the bad rows as they were, with line and reason; it can be corrected and imported.

    It is made only if there is a bad row, and gets its name at the end. If it cannot be written, the import goes on
    without it.
    """

    def __init__(self, path: Path) -> None:
        self._target = path.with_name(f"{path.stem}.errors.csv")
        self._draft = self._target.with_suffix(".csv.unfinished")
        self._file: IO[str] | None = None
        self._can_be_written = True
        self.columns: Sequence[str] = ()
        self.written: str | None = None

    def __enter__(self) -> Self:
        return self

    def write(self, row: Row, reason: str, cells: Sequence[str]) -> None:
        if not self._can_be_written:
            return
        try:
            if self._file is None:
                self._file = self._begin()
            csv.writer(self._file).writerow([*map(for_spreadsheet, cells), row.line, reason])
        except OSError:
            self._can_be_written = False

    def _begin(self) -> IO[str]:
        if self._target.is_dir():
            raise IsADirectoryError(self._target)
        file = self._draft.open("w", encoding="utf-8", newline="")
        csv.writer(file).writerow([*self.columns, "line", "reason"])
        return file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is None:
            return
        with suppress(OSError):
            self._file.close()
            if self._can_be_written and kind is None:
                self._draft.replace(self._target)
                self.written = str(self._target)
                return
        self._draft.unlink(missing_ok=True)  # A part of the bad rows would be taken for all of them.
