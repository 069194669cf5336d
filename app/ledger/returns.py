"""Points held until a time: returned when nobody claimed them, by a reversal per batch, or held for longer.

An issue sets the end, `END_OF_HOLD` (issue.sql). Whether points can still be claimed depends only on it, their
`held_until` (`app.ledger.claim`), not on when a return runs.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.errors import CannotExtend, Fault, InvalidRequest
from app.fields.field import Table
from app.fields.kinds import Timestamp
from app.ledger.held_list import exclude_claims, take_off_list
from app.postgres import locks
from app.postgres.database import digest, row_with_id
from app.postgres.locks import lock_organization
from app.reversals.reversal import DIGESTED
from app.scope import SENT_BY, Scope
from app.settings import INT64_MAX
from app.values.ids import batch_and_position
from app.values.timestamps import HOLD_DAYS_MAX, timestamp

# Until when the points of a batch `b` are held that its organization `o` issues now.
END_OF_HOLD = "o.now + make_interval(hours => 24 * coalesce(b.hold_days, o.held_days))"

# Limits of one transaction, because it holds the organization's row.
BATCHES_MAX = 200
RECIPIENTS_AT_ONCE = 10_000

# If the organization's row is locked for longer than this, its return waits for the next run.
_LOCK_TIMEOUT_MS = 1_000


class Due(NamedTuple):
    """A batch with points that may have been held too long."""

    organization_id: int
    batch_id: int
    sandbox: bool
    recipients: int


class Returned(NamedTuple):
    """What a return gave back from a batch; without a reversal if there was nothing to give back."""

    sandbox: bool
    reversal_id: int | None
    transactions: int
    points: int


def due_returns(connection: Connection, *, at_most: int, without: Iterable[int] = ()) -> list[Due]:
    """Return the batches whose return is due, the longest due first, without those of some organizations."""
    parameters = {"at_most": at_most, "without": list(without)}
    return [Due._make(row) for row in connection.execute(_DUE, parameters)]


# The clock is read once, in a subquery: a value that may change from row to row cannot be looked up in an index.
IS_TO_RETURN = "return_at <= (SELECT clock_timestamp())"
# The second half is what is due only by the clock of a sandbox that is ahead.
_DUE = text(f"""
    (SELECT organization_id, id, sandbox, recipient_count FROM batches
     WHERE {IS_TO_RETURN} AND organization_id <> ALL (CAST(:without AS bigint[]))
     ORDER BY return_at, id LIMIT :at_most)
    UNION ALL
    (SELECT b.* FROM organizations o
     CROSS JOIN LATERAL (
         SELECT organization_id, id, sandbox, recipient_count FROM batches
         WHERE (organization_id, return_at) > (o.id, (SELECT clock_timestamp()))
           AND (organization_id, return_at) <= (o.id, (SELECT clock_timestamp()) + o.sandbox_ahead)
           AND sandbox AND return_at IS NOT NULL
         ORDER BY organization_id, return_at LIMIT :at_most) b
     WHERE o.sandbox_ahead > '0' AND o.id <> ALL (CAST(:without AS bigint[])) LIMIT :at_most)
""")


def steps_of(due: Iterable[Due]) -> Iterator[list[Due]]:
    """Split due batches into steps, each of one organization and within the limits of a transaction."""
    steps: dict[int, list[Due]] = {}
    for batch in due:
        step = steps.setdefault(batch.organization_id, [])
        recipients = sum(other.recipients for other in step)
        if step and (len(step) == BATCHES_MAX or recipients + batch.recipients > RECIPIENTS_AT_ONCE):
            yield steps.pop(batch.organization_id)
            step = steps.setdefault(batch.organization_id, [])
        step.append(batch)
    yield from steps.values()


def return_held(connection: Connection, step: list[Due]) -> list[Returned] | None:
    """Return the points held too long in these batches of one organization; None when another return runs.

    The organization's row is locked as by a drain or a refill, so that balances form one chain. For live points, claims
    are excluded, as by a reversal. A batch that another return has finished is no longer due.

    A disabled organization gets its points back too, since it does nothing itself.

    Raises:
        DBAPIError: the organization's row was locked for longer than any drain takes (`is_locked_out`).
    """
    if not locks.try_to_take(connection, locks.Kind.RETURN):
        return None
    connection.execute(_LIMIT_WAIT, {"timeout_ms": str(_LOCK_TIMEOUT_MS)})
    organization_id = step[0].organization_id
    locks.lock_organization(connection, organization_id)
    if not all(batch.sandbox for batch in step):
        exclude_claims(connection, organization_id)
    returned: list[Returned] = []
    for batch in step:
        parameters = {"batch_id": batch.batch_id, "organization_id": organization_id}
        returned += map(Returned._make, connection.execute(_RETURN, parameters))
    return [reversal for reversal in returned if reversal.reversal_id is not None]


_LIMIT_WAIT = text("SELECT set_config('lock_timeout', :timeout_ms, true)")
_NOBODY_ASKED = (
    *("api_key_id", "member_id", "amount", "expected"),
    *("idempotency_key", "idempotency_hash", "refusal", "codes"),
)
_DIGEST = digest(DIGESTED, "r", done_at="r.created_at", **dict.fromkeys(_NOBODY_ASKED, "NULL"))
_STATEMENT = files("app.ledger").joinpath("returns.sql").read_text()
_RETURN = text(_STATEMENT.format(int64_max=INT64_MAX, digest=_DIGEST, no_longer_listed=take_off_list("marked")))

HELD_UNTIL = Timestamp(
    "held_until",
    f"Until when to hold the points: ISO 8601 with a zone, later than now, at most {HOLD_DAYS_MAX:,} days ahead.",
    is_required=True,
)
EXTEND = Table("Extend", "A later end for a held transaction.", HELD_UNTIL)


HELD_FOR_EVER = "The points are held for ever: there is no end to move."


class NotLater(InvalidRequest):
    """The new end is before that which the transaction has, `held_until`."""

    def __init__(self, held_until: datetime) -> None:
        super().__init__({"held_until": [f"The held_until must be later than it is, {timestamp(held_until)}."]})
        self.held_until = held_until


def extend(
    connection: Connection, transaction_id: int, held_until: datetime, scope: Scope, *, sent_by: int | None = None
) -> bool:
    """Hold a transaction until a later time. False, and nothing changes, if it is held until exactly that time.

    The organization's row is locked first, as by a return and a reversal, and claims are excluded. So a claim, reversal
    or return of the points comes either before the extension or after it.

    Raises:
        NotFound: the organization, or its key `sent_by`, has sent no such transaction in this mode.
        CannotExtend: it is not held, is held without end, or its end has passed.
        NotLater: the time is before the end that it has.
        InvalidRequest: the time is too far ahead.
    """
    batch_id, position = batch_and_position(transaction_id)
    parameters = {
        "id": transaction_id,
        "batch_id": batch_id,
        "position": position,
        **scope._asdict(),
        "held_until": held_until,
        "sent_by": sent_by,
    }
    lock_organization(connection, scope.organization_id)
    if not scope.sandbox:
        exclude_claims(connection, scope.organization_id)
    row = row_with_id(connection, _FIND, parameters, "transaction")
    if (sentence := _conflict(row)) is not None:
        raise CannotExtend(sentence)
    if held_until == row.held_until:  # A repeated call.
        return False
    if held_until < row.held_until:
        raise NotLater(row.held_until)
    if held_until > row.now + timedelta(days=HOLD_DAYS_MAX):
        raise InvalidRequest({"held_until": [Fault("The held_until", f"must be at most {HOLD_DAYS_MAX} days ahead.")]})
    connection.execute(_EXTEND, parameters)
    return True


def _conflict(row: Any) -> str | None:
    """Say why a transaction cannot be held for longer; None when it can."""
    reasons = (
        (not row.debited, "The transaction was not debited, so nothing is held."),
        (
            row.returned_at is not None,
            "The points were held too long and went back to the organization: send them again.",
        ),
        (row.points_left == 0, "All points of the transaction were taken back, so nothing is held."),
        (row.credited, "The points are credited to a user and no longer held."),
        (row.held_until is None, HELD_FOR_EVER),
        (
            row.held_until is not None and row.held_until <= row.now,
            "The points were held too long and go back to the organization: send them again.",
        ),
    )
    return next((sentence for is_so, sentence in reasons if is_so), None)


_FIND = text(f"""
    SELECT t.debited, t.credited, t.points_left, t.returned_at, coalesce(t.held_until, b.held_until) AS held_until,
           time_of(t.organization_id, t.sandbox) AS now
    FROM transactions t JOIN batches b ON b.id = t.batch_id AND b.organization_id = t.organization_id
    WHERE (t.batch_id, t.position) = (:batch_id, :position)
      AND t.organization_id = :organization_id AND t.sandbox = :sandbox AND {SENT_BY}
""")
_EXTEND = text("""
    UPDATE transactions SET held_until = :held_until
    WHERE (batch_id, position) = (:batch_id, :position) AND organization_id = :organization_id
""")
