"""`points members`, `points keys` and `points platform-keys`: who may use the console, and which programs may call."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click
from sqlalchemy import Connection

from app import api_keys, organizations
from app.cli.answer import Answer, columns, document
from app.cli.operator_command import change_command, read_command
from app.cli.options import ORGANIZATION_ID, Command, RowId
from app.local.datadir import RUNNING_FILE, DataDir
from app.members import links, second_factor
from app.members import members as member_rows
from app.platform import keys as platform_rows
from app.scope import Scope
from app.settings import INT64_MAX, checked_public_url, settings
from app.values.key_bounds import SCOPES, Bounds, in_order, parse_end
from app.values.numbers import moment
from app.values.texts import shown, with_name

_OF_MEMBERS = columns(
    *("id", "organization_id", "email", "first_name", "last_name", "role"),
    ("Can sign in", "has_password"),
    *("is_locked", "created_at", "last_signed_in_at", "has_second_factor"),
)
# Where `points up` serves without --port.
_USUAL_URL = "http://127.0.0.1:8000"
_MEMBER_ID = RowId("member")

_member_argument = click.argument("member", metavar="ID_OR_EMAIL")


def _url(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    try:
        return None if text is None else checked_public_url(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


_url_option = click.option(
    "--url",
    callback=_url,
    help="Where people reach the console [default: POINTS_PUBLIC_URL, or where the service runs from here].",
)
_of_option = click.option(
    "--organization", "organization_id", type=ORGANIZATION_ID, help="Needed with an address that several have."
)


@click.group()
def members() -> None:
    """Make, list and remove the people who may use the console."""


@members.command(name="create")
@click.argument("email")
@click.argument("first_name")
@click.argument("last_name")
@click.option("--organization", "organization_id", type=ORGANIZATION_ID, required=True, help="Its id.")
@click.option("--role", type=click.Choice(member_rows.ROLES), required=True, help="What the member may do.")
@_url_option
@change_command
def create_member(connection: Connection, organization_id: int, role: str, url: str | None, **person: str) -> Answer:
    """Make a member, and print the link to choose a password with.

    A viewer sees; a sender also sends, cancels and takes back; an approver also approves what others
    have sent; an admin also manages members, keys and webhooks. The link is good once, for 24 hours, and is shown once.
    """
    member_id, token = links.add(connection, organization_id, **person, role=role, by=None)
    return _link_answer(member_id, token, url)


@members.command(name="list")
@click.argument("id_of_one", metavar="[ORGANIZATION_ID]", type=ORGANIZATION_ID, required=False)
@click.option("--organization", "organization_id", type=ORGANIZATION_ID, help="The same as ORGANIZATION_ID.")
@read_command
def list_members(connection: Connection, id_of_one: int | None, organization_id: int | None) -> Answer:
    """List the members of all organizations, or of one."""
    organization_id = id_of_one if organization_id is None else organization_id
    if organization_id is not None:
        organizations.get(connection, Scope(organization_id, sandbox=False))  # An empty list would hide a wrong id.
    return Answer(member_rows.find_all(connection, organization_id), columns=_OF_MEMBERS)


@members.command()
@_member_argument
@_of_option
@_url_option
@change_command
def link(connection: Connection, member: str, organization_id: int | None, url: str | None) -> Answer:
    """Print a new link for a member whose link has expired or who has forgotten the password.

    Earlier links stop working. The password still works until another is chosen.
    """
    row = _locked(connection, member, organization_id)
    member_id, token = row.id, links.make_link(connection, row, by=None)
    return _link_answer(member_id, token, url)


@members.command()
@_member_argument
@_of_option
@change_command
def remove(connection: Connection, member: str, organization_id: int | None) -> Answer:
    """Remove a member and end the member's sessions. What the member did stays in Activity."""
    row = _locked(connection, member, organization_id)
    member_rows.remove(connection, row, by=None)
    return Answer({"id": row.id, "removed": True}, sentence=f"Member {row.id} is removed.")


@members.command(name="reset-second-factor")
@_member_argument
@_of_option
@change_command
def reset_second_factor(connection: Connection, member: str, organization_id: int | None) -> Answer:
    """Take a lost second factor off a person, in every organization where they have it.

    Signing in asks for the password alone then, until they set up another. First make sure who asks for this.
    """
    row = _locked(connection, member, organization_id)
    is_news = second_factor.take_off(connection, row, by=None, everywhere=True)
    sentence = f"Member {row.id} {'has no second factor any more' if is_news else 'had no second factor'}."
    return Answer({"id": row.id, "has_second_factor": False}, sentence=sentence)


def _locked(connection: Connection, member: str, organization_id: int | None) -> member_rows.Member:
    if "@" in member:
        member_id = member_rows.get_id(connection, member, organization_id)
    elif member.isdecimal():
        member_id = _MEMBER_ID.convert(member, None, None)
    else:
        raise click.UsageError(f"ID_OR_EMAIL must be a member's id or e-mail address, but is {shown(member)}.")
    return member_rows.lock(connection, member_id, organization_id=organization_id)


def _link_answer(member_id: int, token: str, url: str | None) -> Answer:
    running = DataDir(click.get_current_context().params["data_dir"]).read(RUNNING_FILE).get("web_url")
    link = links.link_to(token, url=url or settings().public_url or running or _USUAL_URL)
    sentence = f"{link}\nMember {member_id} chooses a password there. The link is good once, for 24 hours."
    return Answer({"id": member_id, "link": link}, sentence=sentence)


class _End(click.ParamType[datetime]):
    """A day, whose end in UTC it is, or a time with its zone."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            return parse_end(value)
        except ValueError as error:
            self.fail(f"it {error}", param, ctx)


def _bounds(row: Mapping[str, Any]) -> str:
    return Bounds(row["scopes"], row["expires_at"], row["batch_limit"], row["daily_limit"]).in_words() or "–"


def _maker(row: Mapping[str, Any]) -> str:
    made_by = row["made_by"]
    return "–" if made_by is None else f"{made_by['type'].replace('_', ' ')} {made_by['name']}"


_KEEP_IT = "It is shown once and not stored: keep it now."
_POINTS = click.IntRange(1, INT64_MAX)
_START, _MOMENTS = ("Starts with", "start"), ("created_at", "last_used_at", "revoked_at")
_OF_KEYS = columns("id", "name", "mode", _START, ("Bounds", _bounds), ("Made by", _maker), *_MOMENTS)
_OF_PLATFORM = columns("id", "name", ("Scopes", lambda row: " ".join(row["scopes"])), _START, *_MOMENTS)


def _scope_option(scopes: Sequence[str], default: str) -> Callable[[Command], Command]:
    words = f"What the key may do; give it several times for several [default: {default}]."
    return click.option("--scope", "scopes", multiple=True, type=click.Choice(scopes), help=words)


@click.group()
def keys() -> None:
    """Make, list and revoke API keys."""


@keys.command(name="create")
@click.argument("organization_id", type=ORGANIZATION_ID)
@click.option("--development", is_flag=True, help="A key for the sandbox.")
@click.option("--name", help="What people call it, such as the program that uses it: up to 100 characters.")
@_scope_option(SCOPES, "everything")
@click.option(
    "--expires",
    "expires_at",
    type=_End(),
    help="The key works until the end of this day in UTC (2026-12-31), or until a time.",
)
@click.option("--batch-limit", type=_POINTS, help="The most points that it may send in one batch.")
@click.option("--daily-limit", type=_POINTS, help="The most points that it may send on one day in UTC.")
@change_command
def create_key(
    connection: Connection, organization_id: int, development: bool, name: str | None, **given: Any
) -> Answer:
    """Make an API key. It is shown once. What bounds it is set now for good."""
    bounds = Bounds(**given | {"scopes": in_order(given.get("scopes", ()))})
    api_key_id, key = api_keys.create(connection, organization_id, sandbox=development, name=name, bounds=bounds)
    name = api_keys.names_of(connection, [api_key_id])[api_key_id]
    title = with_name(f"{'development' if development else 'live'} key {api_key_id}", name)
    words = f" It has bounds: {bounds.in_words()}." if bounds.in_words() else ""
    sentence = f"{key}\nThis is {title}.{words} {_KEEP_IT}"
    own = {"id": api_key_id, "key": key, "name": name, "organization_id": organization_id, "sandbox": development}
    return Answer(own | bounds.payload(), sentence=sentence)


@keys.command(name="list")
@click.argument("organization_id", type=ORGANIZATION_ID)
@read_command
def list_keys(connection: Connection, organization_id: int) -> Answer:
    """List the keys of an organization."""
    organizations.get(connection, Scope(organization_id, sandbox=False))  # An empty list would hide a wrong id.
    rows = api_keys.find_all(connection, organization_id)
    documents = [document(row, mode="development" if row.sandbox else "live") for row in rows]
    return Answer(documents, columns=_OF_KEYS)


@keys.command(name="revoke")
@click.argument("key_id", type=RowId("key"))
@change_command
def revoke_key(connection: Connection, key_id: int) -> Answer:
    """Revoke a key at once."""
    revoked_at, is_news = api_keys.revoke(connection, key_id)
    title = with_name(f"Key {key_id}", api_keys.names_of(connection, [key_id])[key_id])
    return _revoked(title, key_id, revoked_at, is_news=is_news)


def _revoked(title: str, key_id: int, revoked_at: datetime, *, is_news: bool) -> Answer:
    """Tell that a key of either kind is revoked, or was before."""
    sentence = f"{title} {'is revoked' if is_news else f'was revoked already, at {moment(revoked_at)}'}."
    return Answer({"id": key_id, "revoked": True, "revoked_at": revoked_at}, sentence=sentence)


@click.group(name="platform-keys")
def platform_keys() -> None:
    """Make, list and revoke the keys of the platform's own programs."""


@platform_keys.command(name="create")
@click.argument("name")
@_scope_option(platform_rows.SCOPES, "all")
@change_command
def create_platform_key(connection: Connection, name: str, scopes: tuple[str, ...]) -> Answer:
    """Make a platform key for a program that NAME tells. The key is shown once."""
    stored, key = platform_rows.create(connection, name, scopes)
    words = f"{key}\nThis is platform key {stored.id}, with the scopes {', '.join(stored.scopes)}. {_KEEP_IT}"
    return Answer({"id": stored.id, "key": key, "name": stored.name, "scopes": list(stored.scopes)}, sentence=words)


@platform_keys.command(name="list")
@read_command
def list_platform_keys(connection: Connection) -> Answer:
    """List the platform keys."""
    return Answer(platform_rows.find_all(connection), columns=_OF_PLATFORM)


@platform_keys.command(name="revoke")
@click.argument("key_id", type=RowId("platform key"))
@change_command
def revoke_platform_key(connection: Connection, key_id: int) -> Answer:
    """Revoke a platform key at once."""
    revoked_at, is_news = platform_rows.revoke(connection, key_id)
    return _revoked(f"Platform key {key_id}", key_id, revoked_at, is_news=is_news)
