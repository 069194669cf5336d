"""What all operator commands share: their options, their database, and how they answer."""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import click
from psycopg.errors import InsufficientPrivilege, QueryCanceled
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

import migrations
from app.cli.answer import Answer, write_error
from app.cli.options import data_dir_option, json_option
from app.errors import PointsError, Refused
from app.local import servers
from app.local.datadir import DataDir, user_name
from app.local.postgresql import PostgreSQL
from app.local.supervisor import is_kept_running
from app.local.terminal import end_gently
from app.pages.filters import Page
from app.pages.parameters import LIMIT_DEFAULT, LIMIT_MAX
from app.pages.queries import Query, parse_page_request
from app.postgres.connections import discard_inherited_connections, engine
from app.postgres.database import is_away, is_locked_out, snapshot, transaction
from app.postgres.timed_connection import WrongSession
from app.scope import OPERATOR_LENGTH_MAX, Author
from app.settings import MAIL_TO_LOG, settings

_Row = TypeVar("_Row")

limit_option = click.option(
    "--limit", type=click.IntRange(1), default=LIMIT_DEFAULT, show_default=True, help="At most so many."
)


def operator_command(
    function: Callable[..., Answer], *, makes_data: bool = False, migrates: bool = False
) -> Callable[..., None]:
    """Make a function that returns an `Answer` into a command with `--json`, `--data-dir` and a database.

    Only with `makes_data` is a missing database created; other commands would look into an empty database and succeed.
    Only with `migrates` is a database other than the embedded one brought up to date; other commands refuse.
    """

    @json_option
    @data_dir_option
    @functools.wraps(function)
    def command(*, as_json: bool, data_dir: str, **arguments: Any) -> None:
        end_gently()  # However the command is ended, it leaves no embedded server behind.
        with database(DataDir(data_dir), makes_data=makes_data, migrates=migrates):
            answer = function(**arguments)
        answer.print(as_json=as_json)
        if answer.exit_status:
            raise click.exceptions.Exit(answer.exit_status)

    return command


def read_command(function: Callable[..., Answer]) -> Callable[..., None]:
    """Make a function that takes a connection, to read, into an operator command."""
    return operator_command(_connected(function, snapshot))


def change_command(function: Callable[..., Answer], **options: bool) -> Callable[..., None]:
    """Make a function that takes a connection into an operator command, whose giver is the author of the change."""
    return operator_command(_connected(function, lambda: transaction(by=by_operator())), **options)


def _connected(
    function: Callable[..., Answer], within: Callable[[], AbstractContextManager[Connection]]
) -> Callable[..., Answer]:
    @functools.wraps(function)
    def connected(*arguments: Any, **named: Any) -> Answer:
        with within() as connection:
            return function(connection, *arguments, **named)

    return connected


def by_operator() -> Author:
    """Return who gives the command, as the author of what it does: the system user."""
    return Author(operator=user_name(os.getuid())[:OPERATOR_LENGTH_MAX])


def rows_of(kind: str, read_page: Callable[..., Page[_Row]], query: Query, *, at_most: int, **of: Any) -> list[_Row]:
    """Return the first rows of a list of the platform's, each page of it read in a transaction of its own.

    Raises:
        InvalidRequest: with every fault of the query.
    """
    rows: list[_Row] = []
    page_request = parse_page_request(kind, query, None, **of)
    start = page_request.start
    while len(rows) < at_most:
        with snapshot() as connection:
            page = read_page(connection, page_request.filters, start=start, limit=min(at_most - len(rows), LIMIT_MAX))
        rows += page.rows
        start = page.next
        if start is None:
            break
    return rows


@contextmanager
def database(datadir: DataDir, *, makes_data: bool = False, migrates: bool = False) -> Iterator[None]:
    """Give a command an up-to-date database. The embedded database is brought up to date if it is not."""
    is_new = not PostgreSQL(datadir).is_initialised()
    if is_new and not makes_data and "DATABASE_URL" not in os.environ:
        raise _NoDatabase(datadir)
    with servers.database(datadir) as embedded:
        if embedded and is_new:  # The folder may be wrong.
            write_error(f"There was no database in {datadir.path}: a new, empty one was created.")
        elif embedded and not is_kept_running(datadir, "postgresql"):
            write_error(f"No service runs here: this is about the database in {datadir.path}.")
        servers.name_servers(datadir)
        if embedded:  # The service here sends or prints the mail of a link that a command makes.
            os.environ.setdefault("POINTS_SMTP_URL", MAIL_TO_LOG)
        try:
            with database_in_reach():
                if migrates:
                    migrations.bring_up_to_date()
                elif not migrations.is_up_to_date():
                    if not embedded:
                        raise Refused("The database is not up to date. Run `points migrate` first.")
                    if not makes_data and migrations.revision() is None:
                        raise _NoDatabase(datadir)  # A first start was interrupted, for example.
                    migrations.upgrade(settings().database_url)
                else:
                    migrations.require_ours()
                yield
        finally:
            engine().dispose()
            discard_inherited_connections()


class _NoDatabase(Refused):
    def __init__(self, datadir: DataDir) -> None:
        super().__init__(f"There is no database in {datadir.path}. Name the right data directory with --data-dir.")


class Unreachable(PointsError):
    """The database did not answer; the command did nothing, or not all of it."""

    status = 503


@contextmanager
def database_in_reach() -> Iterator[None]:
    """Run a block that uses the database.

    Raises:
        Unreachable: it did not answer, or went away meanwhile.
        Refused: a row that the command needs was locked for too long, or the role or the session lacks something.
    """
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, InsufficientPrivilege):
            raise Refused(f"The role of DATABASE_URL may not do what this command does: {first_line(error)}.") from None
        if isinstance(error.orig, WrongSession):
            raise Refused(f"{error.orig}.") from None
        if not is_away(error):
            raise
        if is_locked_out(error) or isinstance(error.orig, QueryCanceled):
            raise Refused(f"PostgreSQL gave up waiting ({first_line(error)}). Give the command again.") from None
        if error.connection_invalidated:
            raise Unreachable(
                f"The connection to the database was lost: {first_line(error)}. The command's changes may have been"
                " made all the same: look before you give it again."
            ) from None
        raise Unreachable(f"The database does not answer: {first_line(error)}.") from None


def first_line(error: DBAPIError) -> str:
    """Return what PostgreSQL says first about an error, without its full stop."""
    return str(error.orig).strip().partition("\n")[0].rstrip(".")
