"""The pages of the log of actions: newest first, by the time, then by id."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.pages.filters import CursorPosition, Filters
from app.pages.statements import Listing
from app.values.authors import MEMBER, OPERATOR, PLATFORM_KEY


class ActionRow(NamedTuple):
    """An action with the names of now: of its organization, of who did it, and of its member or key (`subject_name`).

    None of the three who may have done it: somebody unknown.
    """

    id: int
    created_at: datetime
    action: str
    organization_id: int | None
    organization_name: str | None
    member_id: int | None
    member_name: str | None
    platform_key_id: int | None
    platform_key_name: str | None
    operator: str | None
    subject_id: int | None
    subject_name: str | None
    sandbox: bool | None
    detail: str | None

    def payload(self) -> dict[str, Any]:
        """Return what the platform and an operator see of it."""
        organization = None
        if self.organization_id is not None:
            organization = {"id": self.organization_id, "name": self.organization_name}
        return {
            "id": self.id,
            "created_at": self.created_at,
            "action": self.action,
            "by": self._author(),
            "organization": organization,
            "subject_id": self.subject_id,
            "sandbox": self.sandbox,
            "detail": self.detail,
        }

    def _author(self) -> dict[str, Any] | None:
        if self.member_id is not None:
            return {"type": MEMBER, "id": self.member_id, "name": self.member_name}
        if self.platform_key_id is not None:
            return {"type": PLATFORM_KEY, "id": self.platform_key_id, "name": self.platform_key_name}
        return None if self.operator is None else {"type": OPERATOR, "id": None, "name": self.operator}


def _scope(filters: Filters) -> list[str]:
    return [*filters.time_conditions(), *(["organization_id = :organization_id"] if filters.organization_id else ())]


# The actions of all organizations and of none, unless the filters name one.
page = Listing(
    "actions",
    ActionRow,
    "*",
    scope=_scope,
    matches=lambda filters: [filters.author_condition()],
    around="""
        SELECT a.id, a.created_at, a.action, a.organization_id, o.name, a.member_id,
               trim(m.first_name || ' ' || m.last_name), a.platform_key_id, p.name, a.operator, a.subject_id,
               coalesce(trim(s.first_name || ' ' || s.last_name), k.name), a.sandbox, a.detail, a.rows_read
        FROM ({}) a
        LEFT JOIN organizations o ON o.id = a.organization_id
        LEFT JOIN members m ON m.id = a.member_id
        LEFT JOIN platform_keys p ON p.id = a.platform_key_id
        LEFT JOIN members s ON a.action LIKE 'member.%' AND s.id = a.subject_id
        LEFT JOIN api_keys k ON a.action LIKE 'key.%' AND k.id = a.subject_id
        ORDER BY a.created_at DESC, a.id DESC
    """,
)


def position_before(connection: Connection, action_id: int) -> CursorPosition | None:
    """Return where a page begins that goes on after an action, with older ones; None: there is no such action."""
    moment: datetime | None = connection.execute(_MOMENT, {"id": action_id}).scalar_one_or_none()
    return None if moment is None else CursorPosition(moment, action_id - 1)


_MOMENT = text("SELECT created_at FROM actions WHERE id = :id")
