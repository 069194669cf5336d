"""Which organizations hold points for an address, and the lock between their claims and their reversals."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.ledger.held import rows_held_for
from app.postgres import locks

# Organizations whose locks one claim takes. PostgreSQL has room for some thousands of locks of everybody.
ORGANIZATIONS_MAX = 200


def exclude_claims(connection: Connection, organization_id: int) -> None:
    """Exclude claims and folds of an organization until the transaction ends, because its points are taken back.

    A claim takes this lock before any row, so it never waits for a reversal while it holds what the reversal needs.
    There is one lock for all users of the organization: a reversal cannot know which users are registering.
    """
    locks.wait_for(connection, locks.Kind.BALANCES, organization_id)


def exclude_reversals(connection: Connection, organization_ids: Sequence[int]) -> None:
    """Exclude live reversals of these organizations until the transaction ends; wait for running ones.

    Other claims and folds may run. Take all that a transaction needs at once, and before it locks any user.
    """
    if organization_ids:
        locks.share(connection, locks.Kind.BALANCES, organization_ids)


def holders_of(connection: Connection, email_keys: Sequence[str]) -> list[int]:
    """Return the organizations that hold live points for any of these addresses: at most `ORGANIZATIONS_MAX`.

    Points of one that comes later, or beyond these, are left to the search for crossed registrations.
    """
    parameters = {"email_keys": list(email_keys), "at_most": ORGANIZATIONS_MAX}
    return list(connection.execute(_HOLDERS, parameters).scalars())


# LIMIT and OFFSET make PostgreSQL look each address up in an index.
_HOLDERS = text(f"""
    SELECT DISTINCT h.organization_id FROM unnest(CAST(:email_keys AS text[])) AS asked (email_key)
    CROSS JOIN LATERAL (SELECT organization_id FROM ({rows_held_for("asked.email_key")}) rows OFFSET 0) h
    ORDER BY h.organization_id LIMIT :at_most
""")
