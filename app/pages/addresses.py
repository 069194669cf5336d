"""Where the lists find the rows of one address: in an index of its own, in the order of their ids."""

from app.models import ADDRESS_HASH, TRANSACTION_ID
from app.pages.filters import Filters, Place
from app.pages.statements import BATCH, TRANSACTION, in_reach

_HASH_ASKED_FOR = """
    hashtextextended(CAST(:email_key AS text), CAST(:organization_id AS bigint) * 2 + CAST(:sandbox AS boolean)::int)
"""


# The order of the list of an address; the index has it.
NEWEST_FIRST = "transaction_id DESC"


def rows_of_address(filters: Filters, place: Place | None) -> str:
    """Return the statement of the address's transactions with their batches, newest first, numbered from 1.

    A batch is looked up row by row: PostgreSQL could decide to read the whole table for a join. Another
    address may have the same hash, so `is_of_address` has to be asked of each row.
    """
    conditions = [f"{ADDRESS_HASH} = {_HASH_ASKED_FOR}"]
    if place is not None:
        conditions.append(f"{TRANSACTION_ID} <= :place_id")
    if filters.batch_id is not None:
        conditions.append(f"{TRANSACTION_ID} BETWEEN :batch_first_id AND :batch_last_id")
    lines = [
        f"SELECT {BATCH}, transaction_id, {TRANSACTION}, row_number() OVER (ORDER BY {NEWEST_FIRST}) AS place",
        f"FROM (SELECT batch_id, {TRANSACTION_ID} AS transaction_id, {TRANSACTION} FROM transactions",
        f"      WHERE {' AND '.join(conditions)}",
        f"      ORDER BY {NEWEST_FIRST} LIMIT :looked_at_max) t",
        f"CROSS JOIN LATERAL (SELECT {BATCH} FROM batches WHERE id = t.batch_id LIMIT 1) b",
        f"ORDER BY {NEWEST_FIRST}",
    ]
    return "\n".join(lines)


def is_of_address(filters: Filters, *, moment: str) -> list[str]:
    """Return what a row of `rows_of_address` must fulfil; `moment` is the column that the times are about."""
    return [*in_reach(filters, moment=moment), "coalesce(email_key, email) = :email_key"]
