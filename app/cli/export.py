"""`points export`: all transactions, batches or reversals of an organization, on standard output."""

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress

import click
from sqlalchemy.exc import DBAPIError

from app import organizations
from app.batches.batch import STATUSES
from app.batches.transaction import STATES
from app.cli.operator_command import database, first_line
from app.cli.options import ORGANIZATION_ID, RowId, data_dir_option, in_words_of_options
from app.errors import Fault, InvalidRequest, Refused
from app.exports.columns import BATCHES, CSV, JSONL, KINDS, REVERSALS, TRANSACTIONS
from app.exports.export import Export, begin
from app.exports.sources import NOUNS
from app.local.datadir import DataDir
from app.local.terminal import end_gently
from app.pages.filters import Filters
from app.pages.queries import parse_page_request
from app.postgres.database import is_away, single_statement
from app.reversals.reversal import STATUSES as REVERSAL_STATUSES
from app.scope import Scope
from app.values.numbers import counted, points
from app.values.texts import shown
from app.values.zones import ZONE_OF_ALL, whole_day

_A_DAY_OR_TIME = "must be a day such as 2026-01-31, or a time in ISO 8601 with its zone"
# The options that are filters of a list, by their parameters.
_PERIOD = {
    "created_from": ("--from", "The first day in UTC, such as 2026-01-01, or the first moment."),
    "created_to": ("--to", "The last day in UTC, or the last moment [default: now]."),
}
_FILTERS = {
    TRANSACTIONS: {
        "email": ("--email", "Only those of this address."),
        "batch": ("--batch", "Only those of the batch with this id."),
        "reference": ("--reference", "Only those with this reference."),
        "state": ("--state", f"Only those that are in this state now: {', '.join(STATES)}."),
    },
    BATCHES: {
        "email": ("--email", "Only those with a transaction of this address."),
        "label": ("--label", "Only those with this label."),
        "status": ("--status", f"Only those with this status now: {', '.join(STATUSES)}."),
    },
    REVERSALS: {"status": ("--status", f"Only those with this status now: {', '.join(REVERSAL_STATUSES)}.")},
}


@click.group()
def export() -> None:
    """Write all transactions, batches or reversals of an organization."""


def _command(kind: str) -> click.Command:
    filters = {**_PERIOD, **_FILTERS[kind]}

    def run(*, organization_id: int, form: str, sandbox: bool, after: int | None, data_dir: str, **given: str) -> None:
        end_gently()  # However the command is ended, it leaves no embedded server behind.
        with database(DataDir(data_dir)):
            wanted = _filters(kind, organization_id, given, sandbox=sandbox)
            stream = begin(kind, form, wanted, after=after)
            _write(stream, kind)
        click.echo(_summary(stream, kind), err=True)

    options = [
        click.argument("organization_id", type=ORGANIZATION_ID),
        *(click.option(option, name, help=words) for name, (option, words) in filters.items()),
        click.option("--csv", "form", flag_value=CSV, default=CSV, help="Write CSV, as without --jsonl."),
        click.option("--jsonl", "form", flag_value=JSONL, help="Write each row as a line of JSON."),
        click.option("--after", type=RowId(NOUNS[kind]), help=f"Go on behind the {NOUNS[kind]} with this id."),
        click.option("--sandbox", is_flag=True, help="Export the sandbox instead of what is live."),
        data_dir_option,
    ]
    words = f"""Write all {kind} of an organization to standard output, oldest first.

    Without the last line, which tells the number of rows and their sums, the file broke off: give the same command with
    --after and the id in its last whole line.
    """
    for option in reversed(options):
        run = option(run)
    return click.command(kind, help=words, short_help=f"Write all {kind}.")(run)


for _kind in KINDS:
    export.add_command(_command(_kind))


def _filters(kind: str, organization_id: int, given: Mapping[str, str | None], *, sandbox: bool) -> Filters:
    """Read the options by the rules of the lists; those with a fault are a UsageError."""
    with single_statement() as connection:
        organizations.get(connection, Scope(organization_id, sandbox=sandbox))
    query = {name: [value] for name, value in given.items() if value is not None}
    for name in query.keys() & _PERIOD:
        query[name] = [whole_day(ZONE_OF_ALL, query[name][0], is_last=name == "created_to")]
    query["sandbox"] = [str(sandbox)]
    try:
        return parse_page_request(kind, query, None, organization_id=organization_id, also=("sandbox",)).filters
    except InvalidRequest as error:
        options = {name: option for name, (option, _) in {**_PERIOD, **_FILTERS[kind]}.items()}
        faults = dict(error.faults)
        for name in faults.keys() & _PERIOD:
            if isinstance(faults[name][0], Fault):  # The options take a day too.
                faults[name] = [f"{options[name]} {_A_DAY_OR_TIME}, but is {shown(query[name][0])}."]
        raise click.UsageError(in_words_of_options(faults, options)) from None


class _Output:
    """Standard output. `whole` bytes of it hold the pieces that were written to their end."""

    def __init__(self) -> None:
        self._file = sys.stdout.fileno()
        status = os.fstat(self._file)
        # What is appended to a file begins behind what it holds.
        self._whole = status.st_size
        self.is_file = stat.S_ISREG(status.st_mode)

    def write(self, piece: bytes) -> None:
        left = memoryview(piece)
        while left:
            left = left[os.write(self._file, left) :]
        self._whole += len(piece)

    def cut_to_whole(self) -> None:
        """Remove the beginning of a piece from a file, so that what is appended follows a whole line."""
        with suppress(OSError):
            if self.is_file and os.fstat(self._file).st_size > self._whole:
                os.ftruncate(self._file, self._whole)


def _write(stream: Export, kind: str) -> None:
    """Write an export.

    Raises:
        Refused: it was stopped, or could not be written or read; the sentence says how to go on.
    """
    output = _Output()
    last_id = stream.after
    try:
        for piece in stream.content():
            output.write(piece)
            last_id = stream.last_id
    except KeyboardInterrupt:
        why = "The export was stopped"
    except BrokenPipeError:
        why = "The program that reads the export has ended"
    except OSError as error:  # The disk is full, for example.
        why = f"The export could not be written: {error.strerror or error}"
    except DBAPIError as error:
        if not is_away(error):
            raise
        why = f"The database does not answer: {first_line(error)}"
    else:
        return
    output.cut_to_whole()
    raise Refused(f"{why}. {_how_to_go_on(kind, last_id, output)}")


def _how_to_go_on(kind: str, last_id: int | None, output: _Output) -> str:
    if last_id is None:
        return "Not even its first part was written whole: give the command again."
    how = f"go on with --after {last_id}"
    if output.is_file:
        return f"The file ends with {NOUNS[kind]} {last_id}: {how}, and append to the file (>>)."
    return f"Written was {NOUNS[kind]} {last_id}, and perhaps more: {how}, behind that row."


def _summary(stream: Export, kind: str) -> str:
    sums = [points(stream.sums["points"]) + " points"]
    if stream.sums.get("reversed"):
        sums.append(f"of which {points(stream.sums['reversed'])} went back")
    ending = "es" if kind == BATCHES else "s"
    return f"Exported {counted(stream.rows, NOUNS[kind], ending)}: {', '.join(sums)}."
