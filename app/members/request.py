"""The request that makes a member: read from a mapping, with every fault in one answer."""

from collections.abc import Mapping
from typing import Any

from app.fields.field import Table
from app.fields.kinds import EMAIL, FIRST_NAME, LAST_NAME, OneOf
from app.members.members import ROLES
from app.settings import Settings

ROLE = OneOf(
    "role",
    f"What the member may do: {', '.join(ROLES)}; each includes the ones before it.",
    "admin",
    words=ROLES,
    is_required=True,
)
NEW_MEMBER = Table("NewMember", "A person who may use the console.", EMAIL, FIRST_NAME, LAST_NAME, ROLE)


def read_new_member(fields: Mapping[str, Any], limits: Settings) -> dict[str, Any]:
    """Return the values of a new member, as `app.members.links.add` takes them.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    values = NEW_MEMBER.read(fields, limits)
    return values | {"email": values["email"].text}
