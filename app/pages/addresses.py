"""The rows of one address, for the lists of batches and of transactions, read from the index of addresses."""

from app.pages.filters import CursorPosition, Filters
from app.pages.statements import BATCH, COLUMNS_OF_TRANSACTION, FROM_BATCHES, TRANSACTION
from app.values.ids import POSITIONS, TRANSACTION_ID

# The columns of the index of addresses, beside `TRANSACTION_ID`, as it words them. A range of 16,384 batch ids: a batch
# draws one more id for each 16 recipients (app/batches/accept.sql), so a range holds about 262,144 transactions.
ID_RANGE = "((batch_id >> 14)::int)"
# A hash of organization, mode and address. Hashes may collide, so queries compare the address as well.
ADDRESS_HASH = "((hashtextextended(coalesce(email_key, email), organization_id * 2 + sandbox::int) >> 32)::int)"

_HASH_ASKED_FOR = """
    CAST(hashtextextended(CAST(:email_key AS text),
                          CAST(:organization_id AS bigint) * 2 + CAST(:sandbox AS boolean)::int) >> 32 AS int)
"""

# The index is sorted by id range first, which is the order of the ids too.
NEWEST_FIRST = "id_range DESC, transaction_id DESC"


def rows_of_address(filters: Filters, start: CursorPosition | None) -> str:
    """Return the statement of the address's transactions with their batches, newest first, numbered from 1.

    It reads the index once for each id range. It looks batches up row by row, because for a join PostgreSQL might read
    the whole table. Hashes may collide, so the caller must also apply `address_conditions` to each row.
    """
    conditions = [in_index(filters, start)]
    if start is not None:
        conditions.append(f"{TRANSACTION_ID} <= :start_id")
    if filters.batch_id is not None:
        conditions.append(f"{TRANSACTION_ID} BETWEEN :batch_first_id AND :batch_last_id")
    lines = [
        f"SELECT {BATCH}, id_range, transaction_id, {TRANSACTION},",
        f"       row_number() OVER (ORDER BY {NEWEST_FIRST}) AS rows_read",
        f"FROM (SELECT batch_id, {ID_RANGE} AS id_range, {TRANSACTION_ID} AS transaction_id,",
        f"             {COLUMNS_OF_TRANSACTION}",
        "      FROM transactions",
        f"      WHERE {' AND '.join(conditions)}",
        f"      ORDER BY {NEWEST_FIRST} LIMIT :looked_at_max) t",
        f"CROSS JOIN LATERAL (SELECT {FROM_BATCHES} FROM batches WHERE id = t.batch_id LIMIT 1) b",
        f"ORDER BY {NEWEST_FIRST}",
    ]
    return "\n".join(lines)


def in_index(filters: Filters, start: CursorPosition | None = None) -> str:
    """Return the condition by which the index finds the address's transactions, and perhaps a few of others."""
    return f"{ID_RANGE} = ANY({_id_ranges(filters, start)}) AND {ADDRESS_HASH} = {_HASH_ASKED_FOR}"


def _id_ranges(filters: Filters, start: CursorPosition | None) -> str:
    """Return the SQL array of id ranges that may have rows, never beyond the newest batch's."""
    first, last = "0", "(SELECT coalesce(max(id), 0) FROM batches)"
    if filters.batch_id is not None:
        first = last = f"least(:batch_id, {last})"
    elif start is not None:
        last = f"least(:start_id / {POSITIONS}, {last})"
    return f"ARRAY(SELECT CAST(generate_series(({first}) >> 14, ({last}) >> 14) AS int))"


def address_conditions(filters: Filters, *, moment: str) -> list[str]:
    """Return the conditions on the rows of `rows_of_address`; `moment` is the column for the time filters."""
    return [*filters.scope_conditions(moment=moment), "coalesce(email_key, email) = :email_key"]
