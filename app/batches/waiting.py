"""What waits: the batches of an organization that are scheduled or await an approval, in both modes."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.batches.batch import AWAITING_APPROVAL, SCHEDULED, points_of


class Waiting(NamedTuple):
    """A batch that waits, and its points."""

    id: int
    sandbox: bool
    status: str
    send_at: datetime | None
    points: int


def waiting_of(connection: Connection, organization_id: int, *, member_id: int | None = None) -> list[Waiting]:
    """Return what waits of an organization, or of what one member has sent, oldest first."""
    parameters = {"organization_id": organization_id, "member_id": member_id}
    return [Waiting(*row) for row in connection.execute(_WAITING, parameters)]


# One half for each status, which has an index of its own.
_WAITING = text(
    " UNION ALL ".join(
        f"""
        SELECT id, sandbox, status, send_at, {points_of()}
        FROM batches
        WHERE organization_id = :organization_id AND status = '{status}'
          AND member_id IS NOT DISTINCT FROM coalesce(CAST(:member_id AS bigint), member_id)
        """
        for status in (AWAITING_APPROVAL, SCHEDULED)
    )
    + " ORDER BY id"
)
