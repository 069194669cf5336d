"""The rows of an address, or of a reference, read from their indexes, for the lists and the exports."""

from app.pages.filters import CursorPosition, Filters
from app.pages.statements import BATCH, COLUMNS_OF_TRANSACTION, FROM_BATCHES, TRANSACTION
from app.values.ids import POSITIONS, TRANSACTION_ID

# The columns of the index of addresses, beside `TRANSACTION_ID`, as it words them. A range of 16,384 batch ids: a batch
# draws another id for each 16 recipients (app/batches/accept.sql), so a range holds about 262,144 transactions.
_ID_RANGE = "((batch_id >> 14)::int)"
# A hash of organization, mode and address. Hashes may collide, so queries compare the address as well.
ADDRESS_HASH = "((hashtextextended(coalesce(email_key, email), organization_id * 2 + sandbox::int) >> 32)::int)"
# The condition on the transactions of an `id_range`. The bounds of the batch id tell PostgreSQL in which partition.
IN_RANGE = f"""{_ID_RANGE} = id_range AND batch_id >= CAST(id_range AS bigint) << 14
               AND batch_id < CAST(id_range + 1 AS bigint) << 14"""

_HASH_ASKED_FOR = """
    CAST(hashtextextended({},
                          CAST(:organization_id AS bigint) * 2 + CAST(:sandbox AS boolean)::int) >> 32 AS int)
"""
HAS_ADDRESS = "coalesce(email_key, email) = ANY(CAST(:email_keys AS text[]))"

# The order of the rows below, as far as PostgreSQL knows it: of the same range, they come newest first. With a
# longer order, it would read and sort a whole range for a page.
NEWEST_FIRST = "id_range DESC"


def rows_of_address(filters: Filters, start: CursorPosition | None) -> str:
    """Return the statement of the address's transactions with their batches, newest first, numbered from 1.

    It reads the index once for each id range and address, and stops when the page is full. It looks batches up row by
    row, because for a join PostgreSQL might read the whole table. Hashes may collide, so the caller must also apply
    `address_conditions` to each row.
    """
    conditions = [IN_RANGE]
    if start is not None:
        conditions.append(f"{TRANSACTION_ID} <= :start_id")
    if filters.batch_id is not None:
        conditions.append(f"{TRANSACTION_ID} BETWEEN :batch_first_id AND :batch_last_id")
    of_each = [
        f"""(SELECT batch_id, {TRANSACTION_ID} AS transaction_id, {COLUMNS_OF_TRANSACTION}
             FROM transactions WHERE {" AND ".join(conditions)} AND {ADDRESS_HASH} = {hash_}
             ORDER BY {TRANSACTION_ID} DESC LIMIT :looked_at_max)"""
        for hash_ in _hashes_asked_for(filters)
    ]
    rows = " UNION ALL ".join(of_each) + " ORDER BY transaction_id DESC LIMIT :looked_at_max" * (len(of_each) > 1)
    return _with_batches(
        f"""
        SELECT id_range, t.* FROM (SELECT * FROM {_id_ranges(filters, start)} ORDER BY id_range DESC) ranges
        CROSS JOIN LATERAL ({rows}) t
        ORDER BY {NEWEST_FIRST} LIMIT :looked_at_max
        """,
        NEWEST_FIRST,
        batch_id="batch_id",
    )


def _hashes_asked_for(filters: Filters) -> list[str]:
    places = range(1, len(filters.email_keys) + 1)
    return [_HASH_ASKED_FOR.format(f"(CAST(:email_keys AS text[]))[{place}]") for place in places]


def _with_batches(rows: str, order: str, *, batch_id: str) -> str:
    """Return the statement of transactions with their batches, in an order by a single column, numbered from 1."""
    return f"""
        SELECT {BATCH}, {order.removesuffix(" DESC")}, transaction_id, {TRANSACTION},
               row_number() OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS rows_read
        FROM ({rows}) t CROSS JOIN LATERAL (SELECT {FROM_BATCHES} FROM batches WHERE id = t.{batch_id} LIMIT 1) b
        ORDER BY {order}
    """


def from_index(filters: Filters, columns: str) -> str:
    """Return what to select from: these columns of all transactions of the reference or address, in any order."""
    if filters.reference is not None:
        return f"(SELECT {columns} FROM transactions WHERE {_OF_REFERENCE}) t"
    hashes = ", ".join(_hashes_asked_for(filters))
    return f"""
        {_id_ranges(filters, None)} CROSS JOIN LATERAL (
            SELECT {columns} FROM transactions
            WHERE {IN_RANGE} AND {ADDRESS_HASH} = ANY(ARRAY[{hashes}]) AND {HAS_ADDRESS} OFFSET 0
        ) t
    """


def _id_ranges(filters: Filters, start: CursorPosition | None) -> str:
    if filters.batch_id is not None:
        return "(SELECT CAST(id >> 14 AS int) AS id_range FROM batches WHERE id = :batch_id) id_ranges"
    return id_ranges("true" if start is None else f"id <= :start_id / {POSITIONS}")


def id_ranges(condition: str = "true") -> str:
    """Return what to select from: the id ranges that may have transactions of the batches that meet a condition.

    A restore leaves 61,000 ranges without a batch, so it goes from the newest batch of 64 ranges to that of others.
    """
    return f"""(
        WITH RECURSIVE newest (id) AS (
            SELECT max(id) FROM batches WHERE {condition}
            UNION ALL
            SELECT (SELECT max(id) FROM batches WHERE id < n.id >> 20 << 20) FROM newest n WHERE n.id IS NOT NULL
        )
        SELECT CAST(generate_series(id >> 20 << 6, id >> 14) AS int) AS id_range FROM newest
    ) id_ranges"""


def address_conditions(filters: Filters, *, moment: str) -> list[str]:
    """Return the conditions on the rows of `rows_of_address`; `moment` is the column for the time filters."""
    return [*filters.scope_conditions(moment=moment), HAS_ADDRESS]


_OF_REFERENCE = "organization_id = :organization_id AND sandbox = :sandbox AND reference = :reference"
# A reference is unique in its batch, so this is also the order of the transactions' ids. It is the column that the
# index and the partitions go by: by the batch's own `id`, PostgreSQL would read and sort all that a page may look at.
REFERENCES_NEWEST_FIRST = "of_batch DESC"


def rows_of_reference(filters: Filters, start: CursorPosition | None) -> str:
    """Return the statement of the reference's transactions with their batches, newest first, numbered from 1."""
    conditions = [_OF_REFERENCE, *([] if start is None else ["batch_id <= :start_batch_id"])]
    conditions += filters.equal("batch_id")
    rows = f"""
        SELECT batch_id AS of_batch, {TRANSACTION_ID} AS transaction_id, {COLUMNS_OF_TRANSACTION} FROM transactions
        WHERE {" AND ".join(conditions)} ORDER BY batch_id DESC LIMIT :looked_at_max
    """
    return _with_batches(rows, REFERENCES_NEWEST_FIRST, batch_id="of_batch")


def reference_conditions(filters: Filters) -> list[str]:
    """Return the conditions on the rows of `rows_of_reference`."""
    of_address = [] if filters.email_key is None else [HAS_ADDRESS]
    return [*filters.scope_conditions(moment="issued_at"), *of_address]
