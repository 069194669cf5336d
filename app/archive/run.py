"""A run of the archive: each range that may go is closed, written, compared, dropped; what was interrupted goes on.

Each step is committed by itself, and a run begins with what the last one had left. A row is in the database until its
file was read back and compared, and the file is proven once more right before the partition is dropped.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from app.archive import closing, dropping, lately, ranges, rewriting, writing
from app.archive.alone import alone
from app.archive.ranges import Range
from app.archive.waiting import has_all_ended, without_limit
from app.errors import Refused
from app.postgres import partitions
from app.postgres.database import is_away, is_lost, transaction
from app.values.numbers import counted

# What began before is waited for so long; after that, the next run goes on.
_PATIENCE_S = 30.0

_STILL_RUNS = "something that began before still runs; the next run goes on"


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A range of batch ids that is in the archive now, with the name that its files begin with."""

    first_batch_id: int
    last_batch_id: int
    transactions: int
    file: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Waits:
    """A full range that is not in the archive yet, and why."""

    first_batch_id: int
    last_batch_id: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Archiving:
    """What a run has moved into the archive, where it has erased users, and what waits."""

    archived: list[Moved] = field(default_factory=list)
    erased: list[Moved] = field(default_factory=list)
    waiting: list[Waits] = field(default_factory=list)


class _Work(NamedTuple):
    """What is to be archived and where to, and the connection that holds the lock of the archive."""

    before: datetime
    directory: Path
    alone: Connection


def archive(before: datetime, directory: Path, *, tell: Callable[[str], None]) -> Archiving:
    """Take erased users out of the archive, and move every range that may go into it; `tell` hears of each.

    Args:
        before: what is moved was issued before this moment.
        directory: where the files are put.

    Raises:
        ArchiveRuns: another process does this now.
        Refused: `before` is too late; the files cannot be written, or do not hold what they should; or the connection
            leads to a pooler.
    """
    lately.require_past(before)
    done = Archiving()
    with alone() as connection:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _erase(directory, done, tell)
            for first, end in _to_look_at():
                reason = _move(first, end, _Work(before, directory, connection))
                if reason is None:
                    done.archived.append(_moved(first))
                    rows = counted(done.archived[-1].transactions, "transaction")
                    tell(f"Archived the range of batches {first} to {end - 1}: {rows}.")
                else:
                    _waits(first, end, reason, done, tell)
                if reason == _STILL_RUNS:  # The others would wait for the same.
                    break
        except OSError as error:
            raise Refused(f"The archive cannot be written: {error.strerror or error}. Nothing was lost.") from None
    return done


def _erase(directory: Path, done: Archiving, tell: Callable[[str], None]) -> None:
    """Write the files anew that hold a user who was erased since."""
    for one in rewriting.wanted(directory):
        reason = rewriting.rewrite(one, directory)
        if reason is not None:
            _waits(one.first, one.end, reason, done, tell)
            continue
        done.erased.append(_moved(one.first))
        tell(f"The range of batches {one.first} to {one.end - 1} holds no erased user any more.")


def _waits(first: int, end: int, reason: str, done: Archiving, tell: Callable[[str], None]) -> None:
    done.waiting.append(Waits(first_batch_id=first, last_batch_id=end - 1, reason=reason))
    tell(f"The range of batches {first} to {end - 1} waits: {reason}.")


def _to_look_at() -> list[tuple[int, int]]:
    """Return the full partitions, and what was begun, in order."""
    with transaction() as connection:
        full_to = partitions.look(connection).newest_first
        known = {one.first: one for one in ranges.closed(connection)}
        found = {one.first: one.end for one in partitions.attached(connection) if one.end <= full_to}
    found |= {first: one.end for first, one in known.items()}
    return sorted((first, end) for first, end in found.items() if first not in known or not known[first].is_emptied)


def _moved(first: int) -> Moved:
    with transaction() as connection:
        one = ranges.get(connection, first)
    assert one.transactions is not None and one.file is not None, "it was compared"  # noqa: PT018
    return Moved(first_batch_id=first, last_batch_id=one.end - 1, transactions=one.transactions, file=one.file)


def _move(first: int, end: int, work: _Work) -> str | None:
    """Take a range through the steps that are left, and return why it waits; None once it is in the archive."""
    with transaction() as connection:
        known = {one.first: one for one in ranges.closed(connection)}.get(first)
    if known is None or known.sha256 is None:
        reason = _close(first, end, work.before, is_closed=known is not None)
        if reason is not None:
            return reason
        with transaction() as connection:
            known = ranges.get(connection, first)
    while not known.is_archived:
        known = _archive(known, work.directory)
    return _leave(known, work)


def _close(first: int, end: int, before: datetime, *, is_closed: bool) -> str | None:
    """Close a range, and look again once nobody works who did not see that. Return why it must wait."""
    if not is_closed:
        with transaction() as connection:
            without_limit(connection)
            reason = ranges.why_not(connection, first, end, before=before)
            if reason is not None:
                return reason
            ranges.close(connection, first, end)
    if not has_all_ended(patience_s=_PATIENCE_S):
        return _STILL_RUNS
    with transaction() as connection:
        without_limit(connection)
        reason = ranges.why_not(connection, first, end, before=before)
        if reason is not None:
            ranges.reopen(connection, first)
    return reason


def _archive(known: Range, directory: Path) -> Range:
    """Write the files of a closed range, unless they are there; then only the archive is asked for its batches."""
    if known.sha256 is None:
        known = writing.write_and_compare(known, directory)
    is_whole = writing.are_whole(known, directory)
    with transaction() as connection:
        if is_whole:
            ranges.note_archived(connection, known.first)
        else:
            _forget_files(connection, known.first)
        return ranges.get(connection, known.first)


def _forget_files(connection: Connection, first: int) -> None:
    """Have the files of a range written again."""
    closing.forget_sums(connection, first)
    ranges.note_files_lost(connection, first)


def _leave(known: Range, work: _Work) -> str | None:
    """Drop the rows of an archived range, once nobody reads them; then the recipients of its batches."""
    with transaction() as connection:
        is_there = dropping.is_there(connection, known.first)
    if is_there:
        if not has_all_ended(patience_s=_PATIENCE_S):
            return _STILL_RUNS
        if not writing.are_whole(known, work.directory):
            with transaction() as connection:
                dropping.attach_again(connection, known)
                _forget_files(connection, known.first)
            return f"its files are no longer whole in {work.directory}; they are written again by the next run"
        try:
            dropping.detach(work.alone, known.first)
            dropping.drop(work.alone, known.first)
        except DBAPIError as error:
            if is_lost(error) or not is_away(error):
                raise
            return _STILL_RUNS
    dropping.empty_batches(known)
    return None
