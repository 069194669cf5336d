"""`points archive`: moves what is old and over into files, range by range."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.archive import require_parquet
from app.cli.answer import Answer
from app.cli.operator_command import document, operator_command
from app.values.numbers import counted

if TYPE_CHECKING:
    from app.archive.run import Archiving


@click.command()
@click.option(
    "--before",
    required=True,
    metavar="YYYY-MM-DD",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Archive what was over before this day in UTC.",
)
@click.option(
    "--to",
    "directory",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory of the files; it is made if it is missing.",
)
@operator_command
def archive(before: datetime, directory: Path) -> Answer:
    """Move old transactions into Parquet files, and drop them from the database.

    A range of batch ids, that of a full partition, goes when all of it is over: nothing of it is held, its idempotency
    keys have expired and its days are counted. Of the others you are told why they wait. What is archived can no longer
    be read or taken back here; the audit goes on proving it. Killed at any moment, the next run goes on.
    """
    require_parquet()
    from app.archive.run import archive as move  # noqa: PLC0415  # It needs an extra, which may be missing.

    done = move(before.replace(tzinfo=UTC), directory, tell=partial(click.echo, err=True))
    return Answer(document(done), sentence=_summary(done, directory))


def _summary(done: "Archiving", directory: Path) -> str:
    waiting = len(done.waiting)
    wait = f"{counted(waiting, 'range')} {'waits' if waiting == 1 else 'wait'}"
    erased = f"Erased users were taken out of {counted(len(done.erased), 'range')}. " if done.erased else ""
    return f"{erased}{_moved(done, directory, wait if waiting else None)}"


def _moved(done: "Archiving", directory: Path, wait: str | None) -> str:
    if done.archived:
        rows = counted(sum(one.transactions for one in done.archived), "transaction")
        what = f"Archived {counted(len(done.archived), 'range')} with {rows} in {directory}"
        return f"{what}; {wait}." if wait else f"{what}."
    if wait:
        return f"Nothing was archived: {wait}."
    return "There is nothing to archive: no full range of batches is left."
