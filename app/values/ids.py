"""Ids of rows: no row has an id beyond 64 bits, and a transaction's id is made of its batch and position."""

from app.errors import NotFound

_ID_MAX = 2**63 - 1


def require_id(noun: str, number: int) -> None:
    """Refuse a number that is no row's id, because it has more than 64 bits. PostgreSQL would search without an index.

    Raises:
        NotFound: it has, so there is no such row.
    """
    if abs(number) > _ID_MAX:
        raise NotFound(noun, number)


# The most recipients of a batch. The tables have the same number in their constraints and in `transaction_id`.
POSITIONS = 131_072

# The id in SQL, worded as in the index of addresses; the function `transaction_id` would not use that index.
TRANSACTION_ID = f"(batch_id * {POSITIONS} + position)"


def batch_and_position(transaction_id: int) -> tuple[int, int]:
    """Return the id of a transaction's batch, and its position there."""
    return divmod(transaction_id, POSITIONS)
