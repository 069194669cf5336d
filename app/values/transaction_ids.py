"""The ids of transactions: the id of the batch times `POSITIONS`, plus the position in the batch, counted from 0."""

# The most recipients of a batch. The tables have the same number in their constraints and in `transaction_id`.
POSITIONS = 131_072

# The id in SQL, worded as in the index of addresses; the function `transaction_id` would not use that index.
TRANSACTION_ID = f"(batch_id * {POSITIONS} + position)"


def batch_and_position(transaction_id: int) -> tuple[int, int]:
    """Return the id of a transaction's batch, and its position there."""
    return divmod(transaction_id, POSITIONS)
