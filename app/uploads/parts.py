"""The parts of an uploaded list: each holds the recipients of a batch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.recipient_files.columns import Item
from app.recipient_files.recipients import Part
from app.values.addresses import parse


class StoredPart(NamedTuple):
    """The recipients of a batch, each with its line in the list."""

    number: int
    lines: Sequence[int]
    items: Sequence[Item]


def add(connection: Connection, upload_id: int, parts: Sequence[Part]) -> None:
    connection.execute(_ADD, [_part(upload_id, part) for part in parts])


def _part(upload_id: int, part: Part) -> dict[str, Any]:
    def own(name: str) -> list[Any] | None:
        values = [getattr(item, name) for item in part.items]
        return None if values.count(None) == len(values) else values

    emails = [item.email for item in part.items]
    keys = [parse(email).key for email in emails]
    return {
        "upload_id": upload_id,
        "number": part.number,
        "lines": part.lines,
        "emails": emails,
        "email_keys": None if keys == emails else keys,
        "amounts": own("amount"),
        "item_references": own("reference"),
        "labels": own("label"),
    }


_ADD = text("""
    INSERT INTO upload_parts (upload_id, number, lines, emails, email_keys, amounts, item_references, labels)
    VALUES (:upload_id, :number, :lines, :emails, CAST(:email_keys AS text[]), CAST(:amounts AS bigint[]),
            CAST(:item_references AS text[]), CAST(:labels AS text[]))
""")


def drop(connection: Connection, upload_ids: Sequence[int]) -> None:
    """Delete all parts of these lists."""
    connection.execute(
        text("DELETE FROM upload_parts WHERE upload_id = ANY(:upload_ids)"), {"upload_ids": list(upload_ids)}
    )


class Payable(NamedTuple):
    """The parts of a list as they are now, and whom a balance pays of them.

    `digest` differs when any recipient, its values, their order or the borders of the parts are others.
    """

    parts: int
    digest: str
    recipients: int
    points: int


def payable(connection: Connection, upload_id: int, *, amount: int | None, balance: int) -> Payable:
    """Tell whom a balance pays: of each part the first recipients, from what the parts before it leave.

    Args:
        amount: the points for each recipient; None: each has its own.
    """
    return Payable(*connection.execute(_PAYABLE, {"id": upload_id, "amount": amount, "balance": balance}).one())


_PAYABLE = text("""
    WITH RECURSIVE paid AS (
        SELECT 0 AS parts, CAST('' AS bytea) AS digest, CAST(0 AS bigint) AS recipients, CAST(0 AS bigint) AS points
        UNION ALL
        SELECT p.number,
               sha256(d.digest || convert_to(
                   CAST(json_build_array(p.emails, p.amounts, p.item_references, p.labels) AS text), 'UTF8')),
               d.recipients + f.recipients,
               d.points + coalesce(t.totals[f.recipients], CAST(:amount AS bigint) * f.recipients, 0)
        FROM paid d
        JOIN upload_parts p ON (p.upload_id, p.number) = (:id, d.parts + 1)
        CROSS JOIN LATERAL (
            SELECT array_agg(CAST(total AS bigint) ORDER BY position) AS totals
            FROM (SELECT position, sum(amount) OVER (ORDER BY position) AS total
                  FROM unnest(p.amounts) WITH ORDINALITY AS i (amount, position)) i
        ) t
        CROSS JOIN LATERAL (
            SELECT paid_count(CAST(:balance AS bigint) - d.points, cardinality(p.emails), CAST(:amount AS bigint),
                              t.totals) AS recipients
        ) f
    )
    SELECT parts, encode(digest, 'hex'), recipients, points FROM paid ORDER BY parts DESC LIMIT 1
""")


class Repeated(NamedTuple):
    """An address that stands on several lines of a list, each with a reference of its own, and its points together."""

    email: str
    lines: int
    points: int


# As many as a person reads on a page.
_REPEATED_MAX = 10


def repeated(connection: Connection, upload_id: int, *, amount: int | None) -> list[Repeated]:
    """Return addresses that stand on several lines of a list, those with most points."""
    parameters = {"upload_id": upload_id, "amount": amount, "at_most": _REPEATED_MAX}
    return [Repeated(*row) for row in connection.execute(_REPEATED, parameters)]


_REPEATED = text("""
    SELECT min(r.email), count(*), CAST(sum(coalesce(r.amount, CAST(:amount AS bigint))) AS bigint) AS points
    FROM upload_parts p
    CROSS JOIN LATERAL unnest(p.emails, coalesce(p.email_keys, p.emails), p.amounts) AS r (email, key, amount)
    WHERE p.upload_id = :upload_id AND p.item_references IS NOT NULL
    GROUP BY r.key HAVING count(*) > 1 ORDER BY points DESC, r.key LIMIT :at_most
""")


def find(connection: Connection, upload_id: int, number: int) -> StoredPart | None:
    """Return a part of a list; None once its lines are no longer kept. `number` is counted from 1."""
    row: Any = connection.execute(_FIND, {"upload_id": upload_id, "number": number}).one_or_none()
    if row is None:
        return None
    nothing = [None] * len(row.emails)
    items = list(map(Item, row.emails, row.amounts or nothing, row.item_references or nothing, row.labels or nothing))
    return StoredPart(number, row.lines, items)


_FIND = text("""
    SELECT lines, emails, amounts, item_references, labels FROM upload_parts
    WHERE (upload_id, number) = (:upload_id, :number)
""")
