"""What every operator command shares: `--json`, `--data-dir`, its database, and how it answers."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table
from sqlalchemy.exc import DBAPIError

import migrations
from app.database import engine, forget_connections_of_the_parent
from app.errors import PointsError, Refused
from app.local import servers
from app.local.datadir import DEFAULT, DataDir
from app.settings import settings
from app.timestamps import timestamp

data_dir_option = click.option(
    "--data-dir",
    envvar="POINTS_DATA_DIR",
    default=DEFAULT,
    show_default=True,
    type=click.Path(file_okay=False),
    help="Where the embedded servers keep their data.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")


class Unreachable(PointsError):
    """The database did not answer; the command did nothing."""

    code = "unreachable"


class Answer:
    """What a command says: a document for `--json`, and a sentence or a table for a person.

    `rows` are shown as a table under the given columns (heading to key of the row).
    """

    def __init__(
        self,
        document: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        sentence: str | None = None,
        columns: Mapping[str, str] | None = None,
        exit_status: int = 0,
    ) -> None:
        self._document = document
        self._sentence = sentence
        self._columns = columns
        self.exit_status = exit_status

    def print(self, *, as_json: bool) -> None:
        if as_json:
            click.echo(orjson.dumps(self._document, default=_plain, option=orjson.OPT_INDENT_2).decode())
            return
        if self._columns is not None:
            rows = [self._document] if isinstance(self._document, Mapping) else self._document
            _print_table(rows, self._columns)
        if self._sentence is not None:
            click.echo(self._sentence)


def operator_command(function: Callable[..., Answer]) -> Callable[..., None]:
    """Make a function that returns an `Answer` into a command with `--json` and `--data-dir` and a database."""

    @json_option
    @data_dir_option
    @functools.wraps(function)
    def command(*, as_json: bool, data_dir: str, **arguments: Any) -> None:
        with _database(DataDir(data_dir)):
            answer = function(**arguments)
        answer.print(as_json=as_json)
        if answer.exit_status:
            raise click.exceptions.Exit(answer.exit_status)

    return command


def document(row: Any, **more: object) -> dict[str, Any]:
    """Turn a dataclass of the ledger into a JSON document."""
    assert is_dataclass(row), "the nouns answer in dataclasses"
    assert not isinstance(row, type), "and with one of them, not with its class"
    return asdict(row) | more


@contextmanager
def _database(datadir: DataDir) -> Iterator[None]:
    """Bring a command to an up-to-date database. The embedded one is brought up to date by the way."""
    with servers.database(datadir) as embedded:
        servers.name_servers(datadir)
        try:
            if not migrations.is_up_to_date():
                if not embedded:
                    raise Refused("The database is not up to date. Run `points migrate` first.")
                migrations.upgrade(settings().database_url)
            yield
        except DBAPIError as error:
            if not error.connection_invalidated and type(error).__name__ != "OperationalError":
                raise
            raise Unreachable(f"The database does not answer: {_first_line(error)}.") from None
        finally:
            engine().dispose()
            forget_connections_of_the_parent()


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0].rstrip(".")


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return timestamp(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _print_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, key in columns.items():
        numbers = bool(rows) and all(isinstance(row[key], int) and not isinstance(row[key], bool) for row in rows)
        table.add_column(heading, justify="right" if numbers else "left", overflow="fold", no_wrap="(UTC)" in heading)
    for row in rows:
        table.add_row(*(_cell(row[key]) for key in columns.values()))
    console = Console()
    if not console.is_terminal:  # A pipe has no width to fit into.
        console = Console(width=1_000)
    console.print(table)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ") if abs(value) >= 10_000 else str(value)
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return str(value)
