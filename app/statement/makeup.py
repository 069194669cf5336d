"""What the points of a statement were issued for and by whom: its labels and senders with most points, and the rest."""

from datetime import date, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, Row, text

from app.scope import Scope
from app.statement.read import begin_of

# The newest batches that are looked at, and how many labels and senders are named.
LOOKED_AT_MAX = 20_000
NAMED_MAX = 10


class Sender(NamedTuple):
    """Who sent batches: a member, or a program with a key."""

    member_id: int | None
    api_key_id: int | None


class Makeup(NamedTuple):
    """The points debited by label and by sender, most first. `looked_at` of the batches are in it, the newest.

    A None among the labels stands for none. `of_items` are the points of batches whose items have labels of their own.
    """

    labels: list[tuple[str | None, int]]
    of_items: int
    senders: list[tuple[Sender, int]]
    looked_at: int
    points: int

    @property
    def other_labels(self) -> int:
        return self.points - self.of_items - sum(points for _, points in self.labels)

    @property
    def other_senders(self) -> int:
        return self.points - sum(points for _, points in self.senders)


def makeup_of(connection: Connection, scope: Scope, *, first: date, last: date) -> Makeup:
    """Return what the points debited from one day to another were issued for, and by whom."""
    parameters = {
        **scope._asdict(),
        "first": first,
        "end": last + timedelta(days=1),
        "looked_at_max": LOOKED_AT_MAX,
        "named_max": NAMED_MAX,
    }
    rows: dict[str, list[Row[tuple[object, ...]]]] = {"all": [], "label": [], "items": [], "sender": []}
    for row in connection.execute(_MAKEUP, parameters):
        rows[row.kind].append(row)
    [whole] = rows["all"]
    return Makeup(
        labels=[(row.label, int(row.points)) for row in rows["label"]],
        of_items=sum(int(row.points) for row in rows["items"]),
        senders=[(Sender(row.member_id, row.api_key_id), int(row.points)) for row in rows["sender"]],
        looked_at=whole.batches,
        points=int(whole.points),
    )


_MAKEUP = text(f"""
    WITH looked_at AS MATERIALIZED (
        SELECT CASE WHEN labels IS NULL THEN label END AS label, labels IS NOT NULL AS is_of_items, member_id,
               api_key_id, debited_amount
        FROM batches
        WHERE organization_id = :organization_id AND sandbox = :sandbox AND issued_at >= {begin_of(":first")}
          AND issued_at < {begin_of(":end")}
        ORDER BY issued_at DESC, id DESC LIMIT :looked_at_max
    ), grouped AS (
        SELECT CASE WHEN GROUPING(label) = 0 THEN CASE WHEN is_of_items THEN 'items' ELSE 'label' END
                    WHEN GROUPING(member_id) = 0 THEN 'sender' ELSE 'all' END AS kind,
               label, member_id, api_key_id, coalesce(sum(debited_amount), 0) AS points, count(*) AS batches
        FROM looked_at GROUP BY GROUPING SETS ((label, is_of_items), (member_id, api_key_id), ())
    )
    SELECT kind, label, member_id, api_key_id, points, batches
    FROM (SELECT *, row_number() OVER (PARTITION BY kind ORDER BY points DESC, label, member_id, api_key_id) AS place
          FROM grouped) ranked
    WHERE kind = 'all' OR points > 0 AND place <= :named_max
    ORDER BY kind, place
""")
