"""What the statements of all pages have in common: how they are run, and the columns that they hand on."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, CursorResult, text

from app.batches import BatchRow
from app.pages.filters import Filters

# PostgreSQL plans from what it guesses of the tables, and where it expects few rows it gathers and sorts them
# all. For a page that must not be left to guesses: it walks an index in order, and stops when it is full.
_WALK = text("""
    SELECT set_config(name, 'off', true)
    FROM unnest(ARRAY['enable_bitmapscan', 'enable_seqscan', 'enable_sort', 'jit']) AS name
""")


def walk(connection: Connection, statement: str, parameters: Mapping[str, Any]) -> CursorResult[Any]:
    """Run the one statement of a page, in a transaction that does nothing else."""
    connection.execute(_WALK)
    return connection.execute(text(statement), parameters)


# Its last field is the time the organization was created at, which stands on no batch.
BATCH = ", ".join(BatchRow._fields[:-1])
ORGANIZATION_CREATED_AT = (
    "(SELECT created_at FROM organizations WHERE id = :organization_id) AS organization_created_at"
)

# What the rows of a transaction are chosen by and made of.
TRANSACTION = "position, email, email_key, balance, debited, credited, claimed_at, user_id"


def in_reach(filters: Filters, *, moment: str) -> list[str]:
    """Return the conditions on whose rows are asked for and from when; `moment` is the column of the times."""
    conditions = ["organization_id = :organization_id", "sandbox = :sandbox"]
    if filters.created_from is not None:
        conditions.append(f"{moment} >= :created_from")
    if filters.created_to is not None:
        conditions.append(f"{moment} <= :created_to")
    return conditions


def in_order(filters: Filters, order: str) -> str:
    """Return how the batches of a page are put in order, and how many there are at the most.

    Where one batch is asked for there is nothing to order. PostgreSQL, told to, would walk through all to find it.
    """
    is_one = filters.batch_id is not None or filters.idempotency_key is not None
    return "LIMIT 1" if is_one else f"ORDER BY {order} LIMIT :looked_at_max"


def of_batches(filters: Filters) -> list[str]:
    """Return the conditions on a batch that no index finds it by: its rows are looked at one by one."""
    names = [name for name in ("label", "status") if getattr(filters, name) is not None]
    return [f"{name} = :{name}" for name in names]


def with_flags(filters: Filters) -> list[str]:
    """Return the conditions that the flags put on a transaction's row."""
    conditions = []
    if filters.debited is not None:
        conditions.append("debited = :debited")
    if filters.credit is not None:
        conditions.append("credited = :credited")
    return conditions
