"""The ids of rows, as callers give them in paths and commands."""

from app.errors import NotFound

_ID_MAX = 2**63 - 1


def require_id(noun: str, number: int) -> None:
    """Refuse a number that is no row's id, because it has more than 64 bits. PostgreSQL would search without an index.

    Raises:
        NotFound: it has, so there is no such row.
    """
    if abs(number) > _ID_MAX:
        raise NotFound(noun, number)
