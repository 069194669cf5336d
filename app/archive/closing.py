"""The closing figures of a range: what its transactions moved, of each user, and the claims of them."""

from typing import Any

from sqlalchemy import Connection, text

from app.archive.ranges import Range

SUMS = ("transactions", "credits", "debited", "credited", "taken_back")


def write_sums(connection: Connection, closed: Range) -> None:
    """Write the closing sums and claims of a range anew, from its transactions."""
    parameters = {"first": closed.first, "end": closed.end}
    forget_sums(connection, closed.first)
    connection.execute(_WRITE_SUMS, parameters)
    connection.execute(_WRITE_CLAIMS, parameters)


def forget_sums(connection: Connection, first: int) -> None:
    for statement in (_FORGET_SUMS, _FORGET_CLAIMS):
        connection.execute(statement, {"first": first})


_FORGET_SUMS = text("DELETE FROM archived_sums WHERE first_batch_id = :first")
_FORGET_CLAIMS = text("DELETE FROM archived_claims WHERE first_batch_id = :first")
_WRITE_SUMS = text("""
    INSERT INTO archived_sums (first_batch_id, organization_id, sandbox, user_id, transactions, credits, debited,
                               credited, taken_back)
    SELECT :first, t.organization_id, t.sandbox, t.user_id, count(*), count(*) FILTER (WHERE t.credited),
           coalesce(sum(points) FILTER (WHERE t.debited), 0),
           coalesce(sum(coalesce(t.points_left, points)) FILTER (WHERE t.credited), 0),
           coalesce(sum(points - t.points_left) FILTER (WHERE t.debited), 0)
    FROM transactions t JOIN batches b ON b.id = t.batch_id
    CROSS JOIN LATERAL (SELECT coalesce(t.amount, b.amount) AS points) of_it
    WHERE t.batch_id >= :first AND t.batch_id < :end
    GROUP BY t.organization_id, t.sandbox, t.user_id
""")
_WRITE_CLAIMS = text("""
    INSERT INTO archived_claims (first_batch_id, organization_id, user_id, claimed_at, transactions)
    SELECT :first, organization_id, user_id, claimed_at, count(*) FROM transactions
    WHERE batch_id >= :first AND batch_id < :end AND claimed_at IS NOT NULL
    GROUP BY organization_id, user_id, claimed_at
""")


def sums_of_modes(connection: Connection, first: int) -> list[dict[str, Any]]:
    """Return the closing sums of a range for each organization and mode, as its manifest has them.

    Points are text: no number of JSON may be as large as they may become.
    """
    return [row._asdict() for row in connection.execute(_OF_MODES, {"first": first})]


_OF_MODES = text("""
    SELECT organization_id, sandbox, CAST(sum(transactions) AS bigint) AS transactions,
           CAST(sum(credits) AS bigint) AS credits, CAST(sum(debited) AS text) AS debited,
           CAST(sum(credited) AS text) AS credited, CAST(sum(taken_back) AS text) AS taken_back
    FROM archived_sums WHERE first_batch_id = :first GROUP BY organization_id, sandbox
    ORDER BY organization_id, sandbox
""")
