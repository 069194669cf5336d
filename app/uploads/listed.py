"""The lists of an organization as a page shows them: who uploaded each, what became of it, and what was typed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.batches.awaiting import AWAITING_SINCE
from app.batches.batch import NOT_FINAL
from app.batches.schedule import PAYABLE
from app.postgres.database import shown_sum
from app.reversals.reversal import taken_back
from app.scope import Scope


class ListedUpload(NamedTuple):
    """A list with its member and outcome. `statuses` are those of its batches, each once; empty until it is sent."""

    id: int
    token: str
    name: str
    label: str | None
    member_name: str
    question: str | None
    recipients: int | None
    points: int | None
    created_at: datetime
    used_at: datetime
    sent_at: datetime | None
    statuses: Sequence[str]
    debited_count: int
    debited_points: int
    taken_back: int


def unsent(connection: Connection, scope: Scope) -> list[ListedUpload]:
    """Return the lists that are not sent, newest first; there are few (`uploads.UNSENT_MAX`)."""
    return _listed(connection, _UNSENT, scope)


def sent(connection: Connection, scope: Scope, *, before: int | None, at_most: int) -> list[ListedUpload]:
    """Return up to `at_most` sent lists, newest first, with ids below `before` if that is given."""
    return _listed(connection, _SENT, scope, before=before, at_most=at_most)


def of_batch(connection: Connection, batch_id: int, scope: Scope) -> ListedUpload | None:
    """Return the list that a batch was sent from; None for a batch of the API."""
    return next(iter(_listed(connection, _OF_BATCH, scope, batch_ids=[batch_id])), None)


class Part(NamedTuple):
    """Which part of its list a batch is, from 1, of how many, and how many of these are final."""

    number: int
    parts: int
    final: int


def part_of(connection: Connection, upload_id: int, batch_id: int) -> Part:
    """Return which part of a sent list a batch of it is."""
    return Part(*connection.execute(_PART_OF, {"id": upload_id, "batch_id": batch_id}).one())


_PART_OF = text(f"""
    SELECT array_position(batch_ids, CAST(:batch_id AS bigint)), cardinality(batch_ids),
           (SELECT count(*) FROM unnest(batch_ids) AS its (id)
            CROSS JOIN LATERAL (SELECT status FROM batches
                                WHERE id = its.id AND organization_id = uploads.organization_id LIMIT 1) b
            WHERE b.status NOT IN {NOT_FINAL})
    FROM uploads WHERE id = :id
""")


class Awaiting(NamedTuple):
    """A list whose batches await an approval, or (`token` is None) a batch of no list; `since` when, the longest."""

    token: str | None
    name: str | None
    label: str | None
    member_id: int | None
    api_key_id: int | None
    batch_id: int
    batches: int
    recipients: int
    points: int
    since: datetime


AWAITING_MAX = 1_000


def awaiting_of(connection: Connection, scope: Scope) -> list[Awaiting]:
    """Return what awaits an approval, the oldest first; of the oldest `AWAITING_MAX` batches."""
    return [Awaiting(*row) for row in connection.execute(_AWAITING, scope._asdict() | {"at_most": AWAITING_MAX})]


_AWAITING = text(f"""
    SELECT u.token, u.name, b.label, b.member_id, b.api_key_id, min(b.id), count(*), CAST(sum(recipient_count) AS int),
           {shown_sum("b.points")}, min(since)
    FROM (SELECT *, {PAYABLE} AS points, {AWAITING_SINCE} AS since FROM batches
          WHERE organization_id = :organization_id AND sandbox = :sandbox AND status = 'awaiting_approval'
          ORDER BY {AWAITING_SINCE}, id LIMIT :at_most) b
    LEFT JOIN LATERAL (SELECT token, name FROM uploads
                       WHERE batch_ids @> ARRAY[b.id] AND organization_id = :organization_id LIMIT 1) u
         ON b.member_id IS NOT NULL
    GROUP BY u.token, u.name, b.label, b.member_id, b.api_key_id, CASE WHEN u.token IS NULL THEN b.id END
    ORDER BY min(since), min(b.id)
""")


class Sender(NamedTuple):
    """A member, and the points that were issued by the member's lists."""

    member_id: int
    points: int


def senders_since(connection: Connection, scope: Scope, *, since: datetime) -> list[Sender]:
    """Return who had points issued since a moment, whoever had most first; only the newest lists are looked at."""
    parameters = {**scope._asdict(), "since": since, "lists_max": _LISTS_MAX}
    return [Sender._make(row) for row in connection.execute(_SENDERS_SINCE, parameters)]


_LISTS_MAX = 1_000
_SENDERS_SINCE = text("""
    SELECT u.member_id, CAST(sum(b.debited_amount) AS bigint) AS points
    FROM (SELECT member_id, batch_ids FROM uploads
          WHERE organization_id = :organization_id AND sandbox = :sandbox AND sent_at IS NOT NULL
          ORDER BY id DESC LIMIT :lists_max) u
    CROSS JOIN LATERAL unnest(u.batch_ids) AS its (id)
    CROSS JOIN LATERAL (SELECT debited_amount, issued_at FROM batches WHERE id = its.id LIMIT 1) b
    WHERE b.issued_at >= :since
    GROUP BY u.member_id HAVING sum(b.debited_amount) > 0 ORDER BY points DESC, u.member_id
""")


def _listed(connection: Connection, statement: Any, scope: Scope, **more: Any) -> list[ListedUpload]:
    return [ListedUpload(*row) for row in connection.execute(statement, scope._asdict() | more)]


# Each batch is looked up by itself.
_LISTED = f"""
    SELECT u.id, u.token, u.name, u.label, trim(m.first_name || ' ' || m.last_name), u.question, u.recipients, u.points,
           u.created_at, u.used_at, u.sent_at, coalesce(b.statuses, '{{{{}}}}'), coalesce(b.debited_count, 0),
           CAST(coalesce(b.debited_points, 0) AS bigint), CAST(coalesce(b.taken_back, 0) AS bigint)
    FROM (SELECT * FROM uploads WHERE organization_id = :organization_id AND sandbox = :sandbox AND {{which}}) u
    JOIN members m ON m.id = u.member_id
    CROSS JOIN LATERAL (
        SELECT array_agg(DISTINCT status ORDER BY status) AS statuses, sum(debited_count) AS debited_count,
               sum(debited_amount) AS debited_points,
               sum({taken_back("its.id")}) FILTER (WHERE debited_amount > 0) AS taken_back
        FROM unnest(u.batch_ids) AS its (id)
        CROSS JOIN LATERAL (SELECT status, debited_count, debited_amount FROM batches WHERE id = its.id LIMIT 1) b
    ) b
    ORDER BY u.id DESC
"""
_UNSENT = text(_LISTED.format(which="sent_at IS NULL"))
_SENT = text(
    _LISTED.format(
        which="sent_at IS NOT NULL AND (CAST(:before AS bigint) IS NULL OR id < :before)"
        " ORDER BY id DESC LIMIT :at_most"
    )
)
_OF_BATCH = text(_LISTED.format(which="batch_ids @> CAST(:batch_ids AS bigint[])"))


# Of the newest lists, as many different values as a person takes in at a glance.
_LATELY_MAX = 200
_OFFERED_MAX = 10


class LatelyUsed(NamedTuple):
    """Each value once, the last used first."""

    amounts: Sequence[int]
    labels: Sequence[str]


def lately_used(connection: Connection, scope: Scope) -> LatelyUsed:
    rows: Any = connection.execute(_LATELY, {**scope._asdict(), "lists_max": _LATELY_MAX}).all()
    return LatelyUsed(_different(row.amount for row in rows), _different(row.label for row in rows))


def _different(values: Any) -> list[Any]:
    return list(dict.fromkeys(value for value in values if value is not None))[:_OFFERED_MAX]


_LATELY = text("""
    SELECT amount, label FROM uploads
    WHERE organization_id = :organization_id AND sandbox = :sandbox AND sent_at IS NOT NULL
    ORDER BY id DESC LIMIT :lists_max
""")
