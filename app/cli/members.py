"""`points members`: the people of an organization who may use the console."""

import click
from sqlalchemy import Connection

from app import organizations
from app.cli.answer import Answer
from app.cli.operator_command import by_operator, operator_command
from app.cli.options import ORGANIZATION_ID, RowId
from app.local.datadir import RUNNING_FILE, DataDir
from app.members import links
from app.members import members as rows
from app.postgres.database import transaction
from app.values.texts import shown

_COLUMNS = {
    "ID": "id",
    "Organization": "organization_id",
    "E-mail": "email",
    "First name": "first_name",
    "Last name": "last_name",
    "Role": "role",
    "Can sign in": "has_password",
    "Locked": "is_locked",
    "Created": "created_at",
}
# Where `points up` serves without --port.
_USUAL_URL = "http://127.0.0.1:8000"
_MEMBER_ID = RowId("member")

_member_argument = click.argument("member", metavar="ID_OR_EMAIL")

_url_option = click.option(
    "--url", help="Where the members reach the service [default: where it runs from the data directory]."
)


@click.group()
def members() -> None:
    """Make, list and remove the people who may use the console."""


@members.command()
@click.argument("email")
@click.argument("first_name")
@click.argument("last_name")
@click.option("--organization", "organization_id", type=ORGANIZATION_ID, required=True, help="Its id.")
@click.option("--role", type=click.Choice(rows.ROLES), required=True, help="What the member may do.")
@_url_option
@operator_command
def create(email: str, first_name: str, last_name: str, organization_id: int, role: str, url: str | None) -> Answer:
    """Make a member, and print the link to choose a password with.

    A viewer sees; a sender also sends, cancels and takes back; an approver also approves what others
    have sent; an admin also manages members, keys and webhooks. The link is good once, for 24 hours, and is shown once.
    """
    with transaction(by=by_operator()) as connection:
        member_id, token = links.add(connection, organization_id, email, first_name, last_name, role=role, by=None)
    return _link_answer(member_id, token, url)


@members.command(name="list")
@click.argument("id_of_one", metavar="[ORGANIZATION_ID]", type=ORGANIZATION_ID, required=False)
@click.option("--organization", "organization_id", type=ORGANIZATION_ID, help="The same as ORGANIZATION_ID.")
@operator_command
def list_members(id_of_one: int | None, organization_id: int | None) -> Answer:
    """List the members of all organizations, or of one."""
    organization_id = id_of_one if organization_id is None else organization_id
    with transaction() as connection:
        if organization_id is not None:
            organizations.get(connection, organization_id, sandbox=False)  # An empty list would hide a wrong id.
        found = rows.find_all(connection, organization_id)
    return Answer(found, columns=_COLUMNS)


@members.command()
@_member_argument
@_url_option
@operator_command
def link(member: str, url: str | None) -> Answer:
    """Print a new link for a member whose link has expired or who has forgotten the password.

    Earlier links stop working. The password still works until another is chosen.
    """
    with transaction(by=by_operator()) as connection:
        member_id = _id_of(connection, member)
        token = links.make_link(connection, rows.lock(connection, member_id), by=None)
    return _link_answer(member_id, token, url)


@members.command()
@_member_argument
@operator_command
def remove(member: str) -> Answer:
    """Remove a member and end the member's sessions. What the member did stays in Activity."""
    with transaction(by=by_operator()) as connection:
        member_id = _id_of(connection, member)
        rows.remove(connection, rows.lock(connection, member_id), by=None)
    return Answer({"id": member_id, "removed": True}, sentence=f"Member {member_id} is removed.")


def _id_of(connection: Connection, member: str) -> int:
    if "@" in member:
        return rows.get_id(connection, member)
    if not member.isdecimal():
        raise click.UsageError(f"ID_OR_EMAIL must be a member's id or e-mail address, but is {shown(member)}.")
    return _MEMBER_ID.convert(member, None, None)


def _link_answer(member_id: int, token: str, url: str | None) -> Answer:
    running = DataDir(click.get_current_context().params["data_dir"]).read(RUNNING_FILE).get("web_url")
    link = links.link_to(url or running or _USUAL_URL, token)
    sentence = f"{link}\nMember {member_id} chooses a password there. The link is good once, for 24 hours."
    return Answer({"id": member_id, "link": link}, sentence=sentence)
