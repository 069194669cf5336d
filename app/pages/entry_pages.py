"""The pages of `GET /v1/platform/users/{id}/entries`: what made a user's balance, newest first, by the time of each.

An entry has the same time before and after the fold that writes it, and a transaction has one entry of a time. So no
entry comes twice, and none is left out that was there when the walk began. What is written meanwhile has a newer time
and comes first; only what was being committed at that moment may still come in its place.
"""

from datetime import datetime
from typing import Annotated, NamedTuple

from sqlalchemy import Connection

from app.noun import Noun
from app.noun_fields import Id, Part, Shown, says, says_one_of
from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import read_page
from app.values.ids import POSITIONS

TYPES = CREDIT, REVERSAL = "credit", "reversal"


class EntryRow(NamedTuple):
    """A credit of a user, or what was taken back of one."""

    amount: Annotated[int, says("The points; below 0 if they were taken back.", 50)]
    transaction_id: Annotated[Id, says("The id of the transaction.", 131_072)]
    reversal_id: Annotated[Id | None, says("The id of the reversal; null for a credit.", None)]
    organization_id: Annotated[Id, says("The id of the organization.", 1), Shown(name="organization.id")]
    organization_name: Annotated[str, says("Its name.", "Acme"), Shown(name="organization.name")]
    label: Annotated[str | None, says("The label of the transaction; null if it has none.", "January bonus")]
    reference: Annotated[str | None, says("The organization's own id of the transaction; null if it has none.", None)]
    created_at: Annotated[
        datetime,
        says(
            "When they were issued, claimed or taken back. ISO 8601 in UTC, six decimals.",
            "2026-01-31T09:30:00.471006Z",
        ),
    ]

    @property
    def type(
        self,
    ) -> Annotated[str, says_one_of(TYPES, "Reversal: points were taken back.", "credit"), Shown(before="amount")]:
        return CREDIT if self.reversal_id is None else REVERSAL


entries = Noun(
    EntryRow,
    "entry",
    "entries",
    schema="Entry",
    parts={
        "organization": Part("IssuingOrganization", "The organization whose points they are.", says="Who issued them.")
    },
)


def page(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[EntryRow]:
    """Return the entries of a page; `filters.user_id` must be a live user's."""
    statement = _STATEMENT if start is None else _STATEMENT_FROM
    return read_page(
        connection,
        statement,
        filters,
        start,
        limit=limit,
        to_row=lambda row: EntryRow(*row[:-1]),
        next_start=lambda row: CursorPosition(row.created_at, row.transaction_id),
    )


_NEWEST_FIRST = "created_at DESC, transaction_id DESC"
# The second part is what is not folded yet; a claim has its entry at once. Batches are looked up one by one, because
# for a join PostgreSQL might read the whole table.
_LINES = f"""
    SELECT coalesce(e.amount, t.amount, b.amount) AS amount, e.transaction_id, e.reversal_id, o.id, o.name,
           coalesce(t.label, b.label) AS label, t.reference, e.created_at,
           row_number() OVER (ORDER BY {_NEWEST_FIRST}) AS rows_read
    FROM (SELECT * FROM (
              (SELECT created_at, organization_id, transaction_id, reversal_id, amount FROM user_entries
               WHERE user_id = :user_id AND {{from_start}}
               ORDER BY {_NEWEST_FIRST} LIMIT :rows)
              UNION ALL
              (SELECT created_at, organization_id, transaction_id, NULL, NULL
               FROM unfolded_batches f
               CROSS JOIN LATERAL (SELECT issued_at AS created_at FROM batches
                                   WHERE id = f.batch_id AND organization_id = f.organization_id AND {{from_moment}}
                                   LIMIT 1) b
               CROSS JOIN LATERAL (SELECT transaction_id(batch_id, position) AS transaction_id FROM transactions
                                   WHERE batch_id = f.batch_id AND organization_id = f.organization_id
                                     AND user_id = :user_id
                                     AND credited AND claimed_at IS NULL OFFSET 0) t
               WHERE {{from_start}}
               ORDER BY {_NEWEST_FIRST} LIMIT :rows)
          ) of_both ORDER BY {_NEWEST_FIRST} LIMIT :rows) e
    CROSS JOIN LATERAL (SELECT amount, label, reference FROM transactions
                        WHERE batch_id = e.transaction_id / {POSITIONS} AND position = e.transaction_id % {POSITIONS}
                          AND organization_id = e.organization_id LIMIT 1) t
    CROSS JOIN LATERAL (SELECT amount, label FROM batches
                        WHERE id = e.transaction_id / {POSITIONS} AND organization_id = e.organization_id LIMIT 1) b
    CROSS JOIN LATERAL (SELECT id, name FROM organizations WHERE id = e.organization_id LIMIT 1) o
    ORDER BY {_NEWEST_FIRST}
"""
_STATEMENT = _LINES.format(from_start="true", from_moment="true")
_STATEMENT_FROM = _LINES.format(
    from_start="(created_at, transaction_id) <= (:start_moment, :start_id)", from_moment="issued_at <= :start_moment"
)
