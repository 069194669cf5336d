"""Saying in one sentence that the database does not answer."""

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.errors import InsufficientPrivilege, QueryCanceled
from sqlalchemy.exc import DBAPIError

from app.errors import PointsError, Refused
from app.postgres.database import is_away, is_locked_out


class Unreachable(PointsError):
    """The database did not answer; the command did nothing, or not all of it."""


@contextmanager
def database_in_reach() -> Iterator[None]:
    """Run what asks the database.

    Raises:
        Unreachable: it did not answer, or went away meanwhile.
        Refused: it answers, and somebody held what the command needs for longer than it may wait, or its role may not.
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
                f"The connection to the database was lost: {_first_line(error)}. What the command was to change may be"
                " changed all the same: look before you give it again."
            ) from None
        raise Unreachable(f"The database does not answer: {_first_line(error)}.") from None


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0].rstrip(".")
