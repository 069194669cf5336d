"""`points keys` and `points platform-keys`: make, list and revoke keys, of organizations and of the platform."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click

from app import api_keys, organizations
from app.cli.answer import Answer, Columns, document
from app.cli.operator_command import by_operator, operator_command
from app.cli.options import ORGANIZATION_ID, RowId
from app.platform import keys as platform_rows
from app.postgres.database import transaction
from app.settings import INT64_MAX
from app.values.key_bounds import SCOPES, Bounds, in_order, parse_end
from app.values.numbers import moment
from app.values.texts import with_name


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


_Command = TypeVar("_Command", bound=Callable[..., Any])
_KEEP_IT = "It is shown once and not stored: keep it now."
_POINTS = click.IntRange(1, INT64_MAX)
_CREATED: Columns = {"Created": "created_at", "Last used": "last_used_at", "Revoked": "revoked_at"}
_COLUMNS: Columns = {"ID": "id", "Name": "name", "Mode": "mode", "Starts with": "start", "Bounds": _bounds, **_CREATED}
_PLATFORM_COLUMNS: Columns = {
    "ID": "id",
    "Name": "name",
    "Scopes": lambda row: " ".join(row["scopes"]),
    "Starts with": "start",
    **_CREATED,
}


def _scope_option(scopes: Sequence[str], default: str) -> Callable[[_Command], _Command]:
    words = f"What the key may do; give it several times for several [default: {default}]."
    return click.option("--scope", "scopes", multiple=True, type=click.Choice(scopes), help=words)


@click.group()
def keys() -> None:
    """Make, list and revoke API keys."""


@keys.command()
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
@operator_command
def create(
    organization_id: int, development: bool, name: str | None, scopes: tuple[str, ...] = (), **limits: Any
) -> Answer:
    """Make an API key. It is shown once. What bounds it is set now for good."""
    bounds = Bounds(in_order(scopes), **limits)
    with transaction(by=by_operator()) as connection:
        api_key_id, key = api_keys.create(connection, organization_id, sandbox=development, name=name, bounds=bounds)
        name = api_keys.names_of(connection, [api_key_id])[api_key_id]
    title = with_name(f"{'development' if development else 'live'} key {api_key_id}", name)
    words = f" It has bounds: {bounds.in_words()}." if bounds.in_words() else ""
    sentence = f"{key}\nThis is {title}.{words} {_KEEP_IT}"
    told = {"id": api_key_id, "key": key, "name": name, "organization_id": organization_id, "sandbox": development}
    return Answer(told | bounds.payload(), sentence=sentence)


@keys.command(name="list")
@click.argument("organization_id", type=ORGANIZATION_ID)
@operator_command
def list_keys(organization_id: int) -> Answer:
    """List the keys of an organization."""
    with transaction() as connection:
        organizations.get(connection, organization_id, sandbox=False)  # An empty list would hide a wrong id.
        rows = api_keys.find_all(connection, organization_id)
    documents = [document(row, mode="development" if row.sandbox else "live") for row in rows]
    return Answer(documents, columns=_COLUMNS)


@keys.command()
@click.argument("key_id", type=RowId("key"))
@operator_command
def revoke(key_id: int) -> Answer:
    """Revoke a key at once."""
    with transaction(by=by_operator()) as connection:
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
@operator_command
def create_platform_key(name: str, scopes: tuple[str, ...]) -> Answer:
    """Make a platform key for a program that NAME tells. The key is shown once."""
    with transaction(by=by_operator()) as connection:
        made, key = platform_rows.create(connection, name, scopes)
    words = f"{key}\nThis is platform key {made.id}, with the scopes {', '.join(made.scopes)}. {_KEEP_IT}"
    return Answer({"id": made.id, "key": key, "name": made.name, "scopes": list(made.scopes)}, sentence=words)


@platform_keys.command(name="list")
@operator_command
def list_platform_keys() -> Answer:
    """List the platform keys."""
    with transaction() as connection:
        return Answer(platform_rows.find_all(connection), columns=_PLATFORM_COLUMNS)


@platform_keys.command(name="revoke")
@click.argument("key_id", type=RowId("platform key"))
@operator_command
def revoke_platform_key(key_id: int) -> Answer:
    """Revoke a platform key at once."""
    with transaction(by=by_operator()) as connection:
        revoked_at, is_news = platform_rows.revoke(connection, key_id)
    return _revoked(f"Platform key {key_id}", key_id, revoked_at, is_news=is_news)
