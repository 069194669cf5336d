"""The member of a page as the caller that the functions of the API's views take."""

from sqlalchemy import Connection

from app import organizations
from app.api.console.paths import current_member, is_sandbox
from app.api_keys import Caller


def calling_member(connection: Connection) -> Caller:
    """Return the signed-in member, with the mode of the page and the organization as it is now."""
    member, sandbox = current_member(), is_sandbox()
    organization = organizations.find(connection, member.organization_id, sandbox=sandbox)
    return Caller(api_key_id=None, sandbox=sandbox, organization=organization, member_id=member.id)
