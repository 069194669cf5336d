"""`points users`: register accounts, one or many. Registering claims what is held for the address."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from app import users as rows
from app.cli.answer import Answer
from app.cli.operator import document, operator_command
from app.database import transaction
from app.errors import PointsError, Refused
from app.ledger.claim import register

_COLUMNS = {
    "ID": "id",
    "E-mail": "email",
    "First name": "first_name",
    "Last name": "last_name",
    "Balance": "balance",
}
_CSV_COLUMNS = ("email", "first_name", "last_name")
_CHUNK_ROWS = 5_000
_BAD_ROWS_SHOWN_MAX = 100


@click.group()
def users() -> None:
    """Register and show users."""


@users.command()
@click.argument("email")
@click.argument("first_name")
@click.argument("last_name")
@operator_command
def create(email: str, first_name: str, last_name: str) -> Answer:
    """Register a user. Points held for the address are credited."""
    user = rows.new_user(email, first_name, last_name)
    with transaction() as connection:
        if not register(connection, [user]):
            raise Refused(f"A user is registered as {user.address.text} already.")
    return _show(email)


@users.command()
@click.argument("email")
@operator_command
def show(email: str) -> Answer:
    """Show the user registered under an address, with the balance."""
    return _show(email)


@users.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@operator_command
def import_file(file: Path) -> Answer:
    """Register every user of a CSV file with the columns email, first_name and last_name.

    Importing a file again is harmless: who is registered already stays as it is.
    """
    counts = _Import()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"Importing {file.name}", total=file.stat().st_size)
        for chunk, bytes_read in _chunks(file, counts):
            with transaction() as connection:
                counts.registered += len(register(connection, chunk))
            counts.good += len(chunk)
            progress.update(task, completed=bytes_read)
    sentence = f"{counts.registered} registered, {counts.good - counts.registered} were already, {counts.bad} bad rows."
    lines = [f"line {bad['line']}: {bad['reason']}" for bad in counts.bad_rows]
    if counts.bad > len(lines):
        lines.append(f"… and {counts.bad - len(lines)} more bad rows.")
    return Answer(
        {
            "registered": counts.registered,
            "already_registered": counts.good - counts.registered,
            "bad": counts.bad,
            "bad_rows": counts.bad_rows,
        },
        sentence="\n".join([*lines, sentence]),
        exit_status=1 if counts.bad else 0,
    )


@dataclass(kw_only=True)
class _Import:
    registered: int = 0
    good: int = 0
    bad: int = 0
    bad_rows: list[dict[str, object]] = field(default_factory=list)

    def add_bad(self, line: int, reason: str) -> None:
        self.bad += 1
        if len(self.bad_rows) < _BAD_ROWS_SHOWN_MAX:
            self.bad_rows.append({"line": line, "reason": reason})


def _chunks(file: Path, counts: _Import) -> Iterator[tuple[list[rows.NewUser], int]]:
    """Yield the good rows in chunks, each with how many bytes of the file have been read."""
    chunk: list[rows.NewUser] = []
    try:
        with file.open("rb") as raw:
            reader = csv.DictReader((line.decode("utf-8-sig") for line in raw), strict=True)
            missing = [name for name in _CSV_COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise Refused(f"{file.name} has no column {' and no column '.join(missing)} in its first line.")
            for row in reader:
                try:
                    chunk.append(rows.new_user(*(row[name] or "" for name in _CSV_COLUMNS)))
                except PointsError as error:
                    counts.add_bad(reader.line_num, error.sentence)
                if len(chunk) == _CHUNK_ROWS:
                    yield chunk, raw.tell()
                    chunk = []
            yield chunk, raw.tell()
    except (csv.Error, UnicodeDecodeError) as error:
        raise Refused(f"{file.name} is no CSV file in UTF-8: {error}.") from None


def _show(email: str) -> Answer:
    with transaction() as connection:
        return Answer(document(rows.find(connection, email)), columns=_COLUMNS)
