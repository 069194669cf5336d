"""Who of some recipients was sent the same lately: as many points, or points with the same label.

No index leads from an address to its transactions of some days: it would make every send dearer. So the batches of
these days are read, newest first, and of each that may be alike its addresses, which are compared all at once. What
that may cost is bounded (`LOOKED_AT_MAX`), however many the organization has.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from sqlalchemy import Connection, text

from app.batches.errors import StillComparing
from app.batches.queue import PLACE
from app.batches.request import IssueRequest
from app.noun import Noun
from app.noun_fields import Id, Shown, says
from app.postgres import locks
from app.scope import SENT_BY

DAYS = 30
# About a second of PostgreSQL's work. A batch that is passed over weighs as much as a few recipients that are compared.
LOOKED_AT_MAX = 1_000_000
_BATCH_WEIGHS = 5
# The batches that are named.
NAMED_MAX = 5


class AlikeBatch(NamedTuple):
    """A batch in which some of the recipients were sent the same."""

    id: Annotated[Id, says("The id of the batch.", 1), Shown(name="batch_id")]
    recipients: Annotated[int, says("How many of the recipients asked about it concerns.", 2, ge=1)]
    issued_at: Annotated[
        datetime | None,
        says("When it was issued, ISO 8601 in UTC, six decimals; null until then.", "2026-01-31T09:30:00.482913Z"),
    ]


alike = Noun(AlikeBatch, "batch", "batches")


class SentLately(NamedTuple):
    """How many recipients were sent the same within `DAYS`, each address counted once, by what was most alike.

    `same`: as many points, with the same label or both without one. `same_label`: other points with the same label.
    `same_amount`: as many points with another label. `batches` are up to `NAMED_MAX` of the `batch_count` batches,
    those with the most of these recipients first. `is_whole` is False if there was more to look at, further back.
    `compared` is how many addresses there are.
    """

    same: int
    same_label: int
    same_amount: int
    batch_count: int
    batches: Sequence[AlikeBatch]
    is_whole: bool
    compared: int

    @property
    def recipients(self) -> int:
        return self.same + self.same_label + self.same_amount

    @property
    def days(self) -> int:
        return DAYS


def of_request(
    connection: Connection,
    request: IssueRequest,
    organization_id: int,
    *,
    sandbox: bool,
    but_key: str | None,
    sent_by: int | None = None,
) -> SentLately:
    """Return who of a request's recipients was sent the same lately, by anybody or by the key `sent_by`.

    Args:
        but_key: an idempotency key, whose batch does not count: the send would be answered with it.

    Raises:
        StillComparing: another call of the organization is doing the same.
    """
    if not locks.try_to_take(connection, locks.Kind.SENT_LATELY, organization_id):
        raise StillComparing
    totals = request.running_totals
    parameters = {
        "organization_id": organization_id,
        "sandbox": sandbox,
        "sent_by": sent_by,
        "but_key": but_key,
        "keys": list(request.email_keys),
        "amount": request.amount,
        "totals": None if totals is None else list(totals),
        "label": request.label,
        "labels": None if request.labels is None else list(request.labels),
        "item_references": None if request.references is None else list(request.references),
    }
    return find(connection, _OF_REQUEST, parameters)


_OF_REQUEST = """
    SELECT key, coalesce(total - before, CAST(:amount AS bigint)) AS amount,
           coalesce(label, CAST(:label AS text)) AS label, reference
    FROM unnest(CAST(:keys AS text[]), CAST(:totals AS bigint[]), array_prepend(0, CAST(:totals AS bigint[])),
                CAST(:labels AS text[]), CAST(:item_references AS text[])) AS r (key, total, before, label, reference)
    WHERE key IS NOT NULL
"""


def find(connection: Connection, recipients_sql: str, parameters: Mapping[str, Any]) -> SentLately:
    """Return who was sent the same lately.

    Args:
        recipients_sql: selects the recipients: `key` (the normalised address), `amount`, `label` and `reference`.
        parameters: those of `recipients_sql`, with `organization_id`, `sandbox` and `but_key`.
    """
    limits: dict[str, Any] = {"looked_at_max": LOOKED_AT_MAX, "batches_max": LOOKED_AT_MAX // _BATCH_WEIGHS + 1}
    limits |= {"days": DAYS, "named_max": NAMED_MAX, "sent_by": None}
    connection.execute(_COMPARE_ALL_AT_ONCE)
    row: Any = connection.execute(text(_FIND.format(recipients_sql=recipients_sql)), {**limits, **parameters}).one()
    connection.execute(_AS_USUAL)
    same, same_label, same_amount, batch_count, ids, recipients, issued_at, is_whole, compared = row
    named = list(map(AlikeBatch, ids, recipients, issued_at))
    return SentLately(same, same_label, same_amount, batch_count, named, is_whole, compared)


# PostgreSQL guesses that there are few recipients, and might compare each with each; or it would collect and sort all
# batches before it takes the newest.
_NAMES = "'enable_nestloop', 'enable_bitmapscan', 'enable_seqscan', 'enable_sort', 'jit'"
_COMPARE_ALL_AT_ONCE = text(f"""
    SELECT set_config('plan_cache_mode', 'force_custom_plan', true)
    UNION ALL SELECT set_config(name, 'off', true) FROM unnest(ARRAY[{_NAMES}]) AS name
""")
_AS_USUAL = text(f"""
    SELECT set_config(name, reset_val, true) FROM pg_settings WHERE name IN ('plan_cache_mode', {_NAMES})
""")

_BATCHES = f"""
    SELECT id, amount, label, issued_at, recipient_count, debited_count, idempotency_key,
           running_totals IS NOT NULL OR labels IS NOT NULL AS has_own
    FROM batches WHERE organization_id = :organization_id AND sandbox = :sandbox AND {SENT_BY}"""

# Two transactions of an address are not alike if both have references, and other ones. What was not debited, or was
# taken back, does not count; what is not issued yet does.
_FIND = f"""
WITH recipients AS MATERIALIZED ({{recipients_sql}}), its AS MATERIALIZED (
    SELECT time_of(:organization_id, :sandbox) - make_interval(days => :days) AS since
), latest AS (
    ({_BATCHES} AND status = 'awaiting_approval' LIMIT :batches_max)
    UNION ALL
    ({_BATCHES} AND status = 'scheduled' LIMIT :batches_max)
    UNION ALL
    ({_BATCHES} AND status = 'queued' ORDER BY {PLACE} LIMIT :batches_max)
    UNION ALL
    ({_BATCHES} AND issued_at >= (SELECT since FROM its) ORDER BY issued_at DESC, id DESC LIMIT :batches_max)
), likely AS (
    SELECT *, coalesce(debited_count > 0, true) AND (idempotency_key = CAST(:but_key AS text)) IS NOT TRUE
           AND (has_own OR amount IN (SELECT amount FROM recipients)
                 OR label IN (SELECT label FROM recipients)) AS may_be_alike
    FROM latest
), looked_at AS MATERIALIZED (
    SELECT *, coalesce(sum(CASE WHEN may_be_alike THEN recipient_count ELSE 0 END + {_BATCH_WEIGHS}) OVER (
                  ORDER BY issued_at DESC NULLS FIRST, id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
              >= :looked_at_max AS is_beyond
    FROM likely
), alike AS MATERIALIZED (
    SELECT a.key, b.id AS batch_id, b.issued_at,
           CASE WHEN o.label <> a.label OR (o.label IS NULL) <> (a.label IS NULL) THEN 2
                WHEN o.amount <> a.amount THEN 1 ELSE 0 END AS kind
    FROM looked_at b
    CROSS JOIN LATERAL (
        SELECT coalesce(email_keys, emails) AS keys, running_totals AS totals, labels, item_references
        FROM batches WHERE id = b.id LIMIT 1
    ) s
    CROSS JOIN LATERAL (
        SELECT key, coalesce(b.amount, total - before) AS amount, coalesce(r.label, b.label) AS label, reference, place
        FROM unnest(s.keys, s.totals, array_prepend(0, s.totals), s.labels, s.item_references)
             WITH ORDINALITY AS r (key, total, before, label, reference, place)
    ) o
    JOIN recipients a ON a.key = o.key
    WHERE b.may_be_alike AND NOT b.is_beyond AND (o.amount = a.amount OR o.label = a.label)
      AND (o.reference = a.reference) IS NOT FALSE
      AND NOT EXISTS (SELECT FROM transactions
                      WHERE batch_id = b.id AND position = o.place - 1 AND (points_left = 0 OR NOT debited) OFFSET 0)
), of_batches AS (
    SELECT batch_id, issued_at, count(DISTINCT key) AS recipients FROM alike GROUP BY batch_id, issued_at
), named AS (
    SELECT * FROM of_batches ORDER BY recipients DESC, issued_at DESC NULLS FIRST, batch_id DESC LIMIT :named_max
)
SELECT count(*) FILTER (WHERE kind = 0), count(*) FILTER (WHERE kind = 1), count(*) FILTER (WHERE kind = 2),
       (SELECT count(*) FROM of_batches),
       coalesce((SELECT array_agg(batch_id) FROM named), '{{{{}}}}'),
       coalesce((SELECT array_agg(recipients) FROM named), '{{{{}}}}'),
       coalesce((SELECT array_agg(issued_at) FROM named), '{{{{}}}}'),
       NOT EXISTS (SELECT FROM looked_at WHERE is_beyond),
       (SELECT count(*) FROM (SELECT DISTINCT key FROM recipients) addresses)
FROM (SELECT key, min(kind) AS kind FROM alike GROUP BY key) of_recipients
"""
