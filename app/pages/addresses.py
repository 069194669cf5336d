"""Where the lists find the rows of one address: in an index of its own, in the order of their ids."""

from app.models import ADDRESS_HASH, ERA, TRANSACTION_ID
from app.pages.filters import POSITIONS, Filters, Place
from app.pages.statements import BATCH, TRANSACTION, in_reach

_HASH_ASKED_FOR = """
    CAST(hashtextextended(CAST(:email_key AS text),
                          CAST(:organization_id AS bigint) * 2 + CAST(:sandbox AS boolean)::int) >> 32 AS int)
"""

# The order of the list of an address: that of the ids, of which an era is a part. So the index has it.
NEWEST_FIRST = "era DESC, transaction_id DESC"


def rows_of_address(filters: Filters, place: Place | None) -> str:
    """Return the statement of the address's transactions with their batches, newest first, numbered from 1.

    The index is looked into once for each era. A batch is looked up row by row: PostgreSQL could decide to read
    the whole table for a join. Another address may have the same hash, so `is_of_address` has to be asked of each row.
    """
    conditions = [f"{ERA} = ANY({_eras(filters, place)})", f"{ADDRESS_HASH} = {_HASH_ASKED_FOR}"]
    if place is not None:
        conditions.append(f"{TRANSACTION_ID} <= :place_id")
    if filters.batch_id is not None:
        conditions.append(f"{TRANSACTION_ID} BETWEEN :batch_first_id AND :batch_last_id")
    lines = [
        f"SELECT {BATCH}, era, transaction_id, {TRANSACTION}, row_number() OVER (ORDER BY {NEWEST_FIRST}) AS place",
        f"FROM (SELECT batch_id, {ERA} AS era, {TRANSACTION_ID} AS transaction_id, {TRANSACTION} FROM transactions",
        f"      WHERE {' AND '.join(conditions)}",
        f"      ORDER BY {NEWEST_FIRST} LIMIT :looked_at_max) t",
        f"CROSS JOIN LATERAL (SELECT {BATCH} FROM batches WHERE id = t.batch_id LIMIT 1) b",
        f"ORDER BY {NEWEST_FIRST}",
    ]
    return "\n".join(lines)


def _eras(filters: Filters, place: Place | None) -> str:
    """Return the eras in which there may be rows; none is later than the newest batch's, whatever a caller asks for."""
    first, last = "0", "(SELECT coalesce(max(id), 0) FROM batches)"
    if filters.batch_id is not None:
        first = last = f"least(:batch_id, {last})"
    elif place is not None:
        last = f"least(:place_id / {POSITIONS}, {last})"
    return f"ARRAY(SELECT CAST(generate_series(({first}) >> 14, ({last}) >> 14) AS int))"


def is_of_address(filters: Filters, *, moment: str) -> list[str]:
    """Return what a row of `rows_of_address` must fulfil; `moment` is the column that the times are about."""
    return [*in_reach(filters, moment=moment), "coalesce(email_key, email) = :email_key"]
