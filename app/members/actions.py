"""The actions of members, written in the transaction of the change itself; the console's Activity page lists them."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from app.postgres.database import row_to

# Actions on members, sessions, keys and webhooks.
MEMBER_ADDED, MEMBER_REMOVED, ROLE_CHANGED = "member.added", "member.removed", "member.role_changed"
LINK_MADE, PASSWORD_CHOSEN, SESSIONS_ENDED = "member.link_made", "member.password_chosen", "member.sessions_ended"
SIGNED_IN, WRONG_PASSWORD, ZONE_CHOSEN = "member.signed_in", "member.wrong_password", "member.zone_chosen"
KEY_MADE, KEY_REVOKED = "key.made", "key.revoked"
WEBHOOK_MADE, WEBHOOK_CHANGED = "webhook.made", "webhook.changed"
DETAIL_LENGTH_MAX = 255
# Actions on batches, and on a transaction.
SENT, MOVED, CANCELLED, REVERSED = "batch.sent", "batch.moved", "batch.cancelled", "batch.reversed"
APPROVED, REJECTED = "batch.approved", "batch.rejected"
EXTENDED = "transaction.extended"


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """One action as the Activity page shows it. `member_name` is None for an operator of the service.

    `subject_id` is the id of the batch, key, webhook or member that was changed; `subject_name` is the name
    of that member, or of that key if it has one.
    """

    id: int
    created_at: datetime
    member_name: str | None
    action: str
    subject_id: int | None
    subject_name: str | None
    sandbox: bool | None
    detail: str | None


def record(
    connection: Connection,
    action: str,
    *,
    organization_id: int,
    member_id: int | None,
    subject_id: int | None = None,
    sandbox: bool | None = None,
    detail: str | None = None,
) -> None:
    """Record an action, to be committed with its change. `member_id` is None for an operator of the service."""
    values = {
        "action": action,
        "organization_id": organization_id,
        "member_id": member_id,
        "subject_id": subject_id,
        "sandbox": sandbox,
        "detail": detail,
    }
    connection.execute(_RECORD, values)


_RECORD = text("""
    INSERT INTO member_actions (action, organization_id, member_id, subject_id, sandbox, detail)
    VALUES (:action, :organization_id, :member_id, :subject_id, :sandbox, :detail)
""")


def find_page(connection: Connection, organization_id: int, *, before: int | None, limit: int) -> list[Action]:
    """Return up to `limit` actions of an organization, newest first, with ids below `before` if that is given."""
    rows = connection.execute(_PAGE, {"organization_id": organization_id, "before": before, "limit": limit})
    return [row_to(Action, row) for row in rows]


_PAGE = text("""
    SELECT a.id, a.created_at, m.first_name || ' ' || m.last_name AS member_name, a.action, a.subject_id,
           coalesce(s.first_name || ' ' || s.last_name, k.name) AS subject_name, a.sandbox, a.detail
    FROM member_actions a
    LEFT JOIN members m ON m.id = a.member_id
    LEFT JOIN members s ON a.action LIKE 'member.%' AND s.id = a.subject_id
    LEFT JOIN api_keys k ON a.action LIKE 'key.%' AND k.id = a.subject_id
    WHERE a.organization_id = :organization_id AND (CAST(:before AS bigint) IS NULL OR a.id < :before)
    ORDER BY a.id DESC LIMIT :limit
""")
