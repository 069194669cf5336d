"""What a reversal could take back now: read-only, without a lock."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.batches.read import ISSUED, NEVER_ISSUED
from app.errors import BalanceTooLarge, BatchNotIssued, OrganizationDisabled, PointsError, Refused
from app.organizations import OrganizationInMode
from app.reversals.request import ReverseRequest
from app.settings import INT64_MAX
from app.values.ids import POSITIONS


@dataclass(frozen=True, kw_only=True, slots=True)
class Recoverable:
    """How many points a reversal would take (0 when refused), and how many of its `transactions` are in each state.

    `held_points` of the recoverable ones are held, the others are their users'. Some of `held` and `credited` may have
    fewer points left than the amount that was asked for.
    """

    refusal: PointsError | None
    recoverable: int
    held_points: int
    transactions: int
    held: int
    credited: int
    already_reversed: int
    not_debited: int


def recoverable(
    connection: Connection, request: ReverseRequest, organization: OrganizationInMode, *, batch_status: str | None
) -> Recoverable:
    """Return what a reversal would take; `batch_status` is that of its batch, None if it names transactions."""
    parameters = {
        "organization_id": organization.id,
        "batch_id": request.batch_id,
        "transaction_ids": None if request.transaction_ids is None else list(request.transaction_ids),
        "amount": request.amount,
    }
    row = connection.execute(_RECOVERABLE, parameters).one()
    is_short = request.atomic and row.served < row.transactions
    points = int(row.points)
    refusal: PointsError | None = None
    if organization.is_disabled:
        refusal = OrganizationDisabled()
    elif batch_status in NEVER_ISSUED:
        refusal = BatchNotIssued()
    elif batch_status not in (None, ISSUED):
        refusal = Refused("The batch is not issued, so nothing can be taken back yet.")
    elif is_short:
        refusal = Refused("Not all of it can be taken back, so with atomic nothing is.")
    elif points == 0:
        refusal = Refused("Nothing is left that could be taken back.")
    elif organization.balance + points > INT64_MAX:
        refusal = BalanceTooLarge()
    return Recoverable(
        refusal=refusal,
        recoverable=0 if refusal else points,
        held_points=0 if refusal else int(row.held_points),
        transactions=row.transactions,
        held=row.held,
        credited=row.credited,
        already_reversed=row.already_reversed,
        not_debited=row.transactions - row.held - row.credited - row.already_reversed,
    )


# Each transaction is looked up by itself, as in a drain.
_RECOVERABLE = text(f"""
    SELECT count(*) AS transactions,
           count(*) FILTER (WHERE debited AND points_left > 0 AND NOT credited) AS held,
           count(*) FILTER (WHERE debited AND points_left > 0 AND credited) AS credited,
           count(*) FILTER (WHERE debited AND points_left = 0) AS already_reversed,
           count(*) FILTER (WHERE is_served) AS served,
           coalesce(sum(coalesce(CAST(:amount AS bigint), points_left)) FILTER (WHERE is_served), 0) AS points,
           coalesce(sum(coalesce(CAST(:amount AS bigint), points_left)) FILTER (WHERE is_served AND NOT credited), 0)
               AS held_points
    FROM (
        SELECT *, debited AND points_left > 0 AND coalesce(CAST(:amount AS bigint) <= points_left, true) AS is_served
        FROM (
            SELECT t.debited, t.credited, coalesce(t.points_left, t.amount, b.amount) AS points_left
            FROM (SELECT x.* FROM transactions x
                  WHERE x.batch_id = :batch_id AND x.organization_id = :organization_id
                  UNION ALL
                  SELECT x.* FROM unnest(CAST(:transaction_ids AS bigint[])) AS asked (id)
                  CROSS JOIN LATERAL (
                      SELECT * FROM transactions
                      WHERE batch_id = asked.id / {POSITIONS} AND position = asked.id % {POSITIONS}
                        AND organization_id = :organization_id LIMIT 1) x) t
            CROSS JOIN LATERAL (SELECT amount FROM batches
                                WHERE batches.id = t.batch_id AND organization_id = :organization_id LIMIT 1) b
        ) asked
    ) counted
""")
