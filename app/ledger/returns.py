"""Returning: points that nobody claimed in time go back to the organization, by one reversal per batch.

Whether points can still be claimed depends only on their `held_until` (`app.ledger.claim`), not on when this runs.
"""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.ledger.held import take_off_list
from app.ledger.holders import exclude_claims
from app.postgres import locks
from app.postgres.digests import digest
from app.reversals.read import DIGESTED
from app.settings import INT64_MAX

# Limits of one transaction, because it holds the organization's row.
BATCHES_MAX = 200
RECIPIENTS_MAX = 10_000

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
# The second half is what is due only by the clock of a sandbox that is ahead.
_DUE = text("""
    (SELECT organization_id, id, sandbox, recipient_count FROM batches
     WHERE return_at <= (SELECT clock_timestamp()) AND organization_id <> ALL (CAST(:without AS bigint[]))
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
    """Split due batches into steps, each of one organization and within the limits of one transaction."""
    steps: dict[int, list[Due]] = {}
    for one in due:
        step = steps.setdefault(one.organization_id, [])
        recipients = sum(other.recipients for other in step)
        if step and (len(step) == BATCHES_MAX or recipients + one.recipients > RECIPIENTS_MAX):
            yield steps.pop(one.organization_id)
            step = steps.setdefault(one.organization_id, [])
        step.append(one)
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
    if not all(one.sandbox for one in step):
        exclude_claims(connection, organization_id)
    returned: list[Returned] = []
    for one in step:
        parameters = {"batch_id": one.batch_id, "organization_id": organization_id}
        returned += map(Returned._make, connection.execute(_RETURN, parameters))
    return [one for one in returned if one.reversal_id is not None]


_LIMIT_WAIT = text("SELECT set_config('lock_timeout', :timeout_ms, true)")
_NOBODY_ASKED = ("api_key_id", "member_id", "amount", "idempotency_key", "idempotency_hash", "refusal", "codes")
_DIGEST = digest(DIGESTED, "r", done_at="r.created_at", **dict.fromkeys(_NOBODY_ASKED, "NULL"))
_STATEMENT = files("app.ledger").joinpath("returns.sql").read_text()
_RETURN = text(_STATEMENT.format(int64_max=INT64_MAX, digest=_DIGEST, no_longer_listed=take_off_list("marked")))
