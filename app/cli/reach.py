"""Turning errors of the database into one sentence for the person at the terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.errors import InsufficientPrivilege, QueryCanceled
from sqlalchemy.exc import DBAPIError

from app.errors import PointsError, Refused
from app.postgres.database import is_away, is_locked_out


class Unreachable(PointsError):
    """The database did not answer; the command did nothing, or not all of it."""

    status = 503


@contextmanager
def database_in_reach() -> Iterator[None]:
    """Run a block that uses the database.

    Raises:
        Unreachable: it did not answer, or went away meanwhile.
        Refused: a row that the command needs was locked for too long, or the role lacks a right.
    """
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, InsufficientPrivilege):
            raise Refused(
                f"The role of DATABASE_URL may not do what this command does: {_first_line(error)}."
            ) from None
        if not is_away(error):
            raise
        if is_locked_out(error) or isinstance(error.orig, QueryCanceled):
            raise Refused(f"PostgreSQL gave up waiting ({_first_line(error)}). Give the command again.") from None
        if error.connection_invalidated:
            raise Unreachable(
                f"The connection to the database was lost: {_first_line(error)}. The command's changes may have been"
                " made all the same: look before you give it again."
            ) from None
        raise Unreachable(f"The database does not answer: {_first_line(error)}.") from None


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0].rstrip(".")
