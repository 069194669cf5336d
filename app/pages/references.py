"""The rows of one reference, read from the index of references, newest batch first."""

from app.pages.filters import CursorPosition, Filters
from app.pages.statements import BATCH, COLUMNS_OF_TRANSACTION, FROM_BATCHES, TRANSACTION
from app.values.ids import TRANSACTION_ID

# A reference is unique in its batch, so this is also the order of the transactions' ids. It is the column that the
# index and the partitions go by: by the batch's own `id`, PostgreSQL would read and sort all that a page may look at.
NEWEST_FIRST = "of_batch DESC"


def rows_of_reference(filters: Filters, start: CursorPosition | None) -> str:
    """Return the statement of the reference's transactions with their batches, newest first, numbered from 1."""
    conditions = ["organization_id = :organization_id", "sandbox = :sandbox", "reference = :reference"]
    if start is not None:
        conditions.append("batch_id <= :start_batch_id")
    if filters.batch_id is not None:
        conditions.append("batch_id = :batch_id")
    lines = [
        f"SELECT {BATCH}, of_batch, transaction_id, {TRANSACTION},",
        f"       row_number() OVER (ORDER BY {NEWEST_FIRST} ROWS UNBOUNDED PRECEDING) AS rows_read",
        f"FROM (SELECT batch_id AS of_batch, {TRANSACTION_ID} AS transaction_id, {COLUMNS_OF_TRANSACTION}",
        "      FROM transactions",
        f"      WHERE {' AND '.join(conditions)}",
        "      ORDER BY batch_id DESC LIMIT :looked_at_max) t",
        f"CROSS JOIN LATERAL (SELECT {FROM_BATCHES} FROM batches WHERE id = t.of_batch LIMIT 1) b",
        f"ORDER BY {NEWEST_FIRST}",
    ]
    return "\n".join(lines)


def reference_conditions(filters: Filters) -> list[str]:
    """Return the conditions on the rows of `rows_of_reference`."""
    conditions = filters.scope_conditions(moment="issued_at")
    if filters.email_key is not None:
        conditions.append("coalesce(email_key, email) = :email_key")
    return conditions
