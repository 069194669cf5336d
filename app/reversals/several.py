"""Taking back several batches at once: a reversal for each that has points left, all accepted together."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from app.api_keys import Caller
from app.batches.batch import ISSUED, Batch
from app.errors import Refused
from app.postgres import locks
from app.reversals.accept import accept
from app.reversals.request import Recoverable, ReverseReading, ReverseRequest, recoverable
from app.settings import settings


class OtherPoints(Refused):
    """Other points can be taken back than whoever asks has seen."""

    def __init__(self) -> None:
        super().__init__(
            "Other points can be taken back than you have seen, so nothing was taken back. Look at the figures again."
        )


class Left(NamedTuple):
    """A batch of which points can be taken back."""

    batch_id: int
    figures: Recoverable


def left_of(connection: Connection, who: Caller, batch_rows: Sequence[Batch]) -> list[Left]:
    """Return those of these batches of which points can be taken back, in their order.

    Raises:
        PointsError: the organization may not take any back, or its balance cannot hold them.
    """
    left = []
    for batch in batch_rows:
        if batch.status != ISSUED:
            continue
        figures = recoverable(connection, _request(batch.id, "-"), who.organization, batch_status=batch.status)
        if figures.refusal is not None and not isinstance(figures.refusal, Refused):
            raise figures.refusal
        if figures.recoverable:
            left.append(Left(batch.id, figures))
    return left


def _request(batch_id: int, reason: str, expected: int | None = None) -> ReverseRequest:
    expect = None if expected is None else {"recoverable": expected}
    return ReverseReading({"batch": batch_id, "reason": reason, "expect": expect}, settings()).request()


def seen_of(left: Sequence[Left]) -> str:
    """Return a text that differs when other points can be taken back."""
    return " ".join(f"{batch_id}:{figures.recoverable}:{figures.held_points}" for batch_id, figures in left)


def accept_all(
    connection: Connection, who: Caller, batch_rows: Sequence[Batch], *, reason: str, seen: str
) -> list[int]:
    """Queue the reversals, and return their ids; until the commit nobody else accepts one.

    Raises:
        InvalidRequest: the reason is none.
        OtherPoints: `seen` is not the `seen_of` now.
        PointsError: as of `left_of`.
    """
    locks.wait_for(connection, locks.Kind.REVERSALS, who.organization.id)
    left = left_of(connection, who, batch_rows)
    if not left or seen_of(left) != seen:
        raise OtherPoints
    requests = [_request(batch_id, reason, figures.recoverable) for batch_id, figures in left]
    return [accept(connection, who, request, None).reversal_id for request in requests]
