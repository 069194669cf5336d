"""The signed-in member as the caller for functions of the API, and as the author of recorded actions."""

from sqlalchemy import Connection

from app import organizations
from app.actions import log as actions
from app.api_keys import Caller
from app.console.blueprints import current_member, is_sandbox
from app.values.authors import Author


def calling_member(connection: Connection) -> Caller:
    """Return the signed-in member, with the mode of the page and the organization as it is now."""
    member, sandbox = current_member(), is_sandbox()
    organization = organizations.get(connection, member.organization_id, sandbox=sandbox)
    return Caller(api_key_id=None, sandbox=sandbox, organization=organization, member_id=member.id)


def record_action(
    connection: Connection, action: str, subject_id: int, *, sandbox: bool | None = None, detail: str | None = None
) -> None:
    """Record an action of the signed-in member, to be committed with its change."""
    actions.record(
        connection,
        action,
        organization_id=current_member().organization_id,
        subject_id=subject_id,
        sandbox=sandbox,
        detail=detail,
        by=signed_in(),
    )


def signed_in() -> Author:
    """Return the signed-in member as the author of what is done."""
    return Author(member_id=current_member().id)
