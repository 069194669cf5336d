"""Saying in one sentence that the database does not answer."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from app.database import is_away
from app.errors import PointsError


class Unreachable(PointsError):
    """The database did not answer; the command did nothing, or not all of it."""

    code = "unreachable"


@contextmanager
def database_in_reach() -> Iterator[None]:
    """Run what asks the database.

    Raises:
        Unreachable: it did not answer, or went away meanwhile.
    """
    try:
        yield
    except DBAPIError as error:
        if not is_away(error):
            raise
        raise Unreachable(f"The database does not answer: {_first_line(error)}.") from None


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0].rstrip(".")
