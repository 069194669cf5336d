"""The recipients of an address in batches that are not issued yet: no transaction leads to them.

No index leads from an address to such a batch: it would make every send dearer. So the batches that wait are read,
newest first, and of each its addresses, up to `LOOKED_AT_MAX` in all.
"""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.batches.batch import NOT_FINAL
from app.batches.queue import PLACE
from app.pages.addresses import HAS_ADDRESS
from app.pages.filters import Filters
from app.pages.statements import INDEX_ORDER_ONLY

# About half a second of PostgreSQL's work. A batch weighs as much as a few addresses.
LOOKED_AT_MAX = 1_000_000
_BATCH_WEIGHS = 5


class WaitingRecipient(NamedTuple):
    """A recipient of a batch that is not issued yet."""

    batch_id: int
    status: str
    send_at: datetime | None
    email: str
    amount: int
    label: str | None
    reference: str | None


class Waiting(NamedTuple):
    """Some recipients that wait, those of the newest batches first; not whole if there is more to look at."""

    rows: list[WaitingRecipient]
    is_whole: bool


def find(connection: Connection, filters: Filters, *, at_most: int) -> Waiting:
    """Return up to `at_most` recipients that match, by a whole address or a part of one."""
    rows = [*filters.equal("reference"), *filters.part_conditions(amount="amount")]
    rows += [] if filters.email_key is None else [HAS_ADDRESS]
    heads = [*filters.scope_conditions(), *filters.own_conditions(), *filters.sender_conditions()]
    statement = _FIND.format(heads=" AND ".join(heads), rows=" AND ".join(rows))
    limits = {"waiting_max": LOOKED_AT_MAX, "at_most": at_most + 1}
    connection.execute(INDEX_ORDER_ONLY)
    found: Any = connection.execute(text(statement), filters.parameters() | limits).all()
    shown = [WaitingRecipient(*row[:-1]) for row in found if row.email is not None]
    return Waiting(shown[:at_most], is_whole=len(shown) == len(found) and len(shown) <= at_most)


# Each status is looked up in its own index; the first batch too far back gives a row without an address.
_WAITING = " UNION ALL ".join(
    f"(SELECT id, status, send_at, recipient_count FROM batches WHERE status = '{status}' AND {{heads}}"
    f" {f'ORDER BY {PLACE}' if status == 'queued' else ''} LIMIT :waiting_max / {_BATCH_WEIGHS})"
    for status in NOT_FINAL
)
_FIND = f"""
    WITH looked_at AS MATERIALIZED (
        SELECT *, sum(recipient_count + {_BATCH_WEIGHS}) OVER (ORDER BY id DESC ROWS UNBOUNDED PRECEDING)
                  - recipient_count >= :waiting_max AS is_beyond
        FROM ({_WAITING}) waiting
    ), beyond AS (SELECT id FROM looked_at WHERE is_beyond ORDER BY id DESC LIMIT 1)
    SELECT id, status, send_at, email, amount, coalesce(own_label, label), reference, place
    FROM (
        SELECT b.id, b.status, b.send_at, r.email, r.email_key, coalesce(r.total - r.before, s.amount) AS amount,
               r.own_label, s.label, r.reference, r.place
        FROM looked_at b
        CROSS JOIN LATERAL (SELECT *, coalesce(payable_totals, running_totals) AS totals FROM batches
                            WHERE batches.id = b.id LIMIT 1) s
        CROSS JOIN LATERAL unnest(s.emails, s.email_keys, s.totals,
                                  CASE WHEN s.totals IS NOT NULL THEN array_prepend(0, s.totals) END, s.labels,
                                  s.item_references)
                               WITH ORDINALITY AS r (email, email_key, total, before, own_label, reference, place)
        WHERE NOT b.is_beyond AND r.email IS NOT NULL
    ) its WHERE {{rows}}
    UNION ALL SELECT id, NULL, NULL, NULL, NULL, NULL, NULL, 0 FROM beyond
    ORDER BY id DESC, place LIMIT :at_most
"""
