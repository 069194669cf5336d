"""`points platform-keys`: make, list and revoke the keys of the platform's own programs."""

from typing import TYPE_CHECKING

import click

from app.cli.answer import Answer
from app.cli.keys import revoked
from app.cli.operator_command import by_operator, document, operator_command
from app.cli.options import RowId
from app.platform import keys
from app.postgres.database import transaction

if TYPE_CHECKING:
    from app.cli.tables import Columns

_COLUMNS: "Columns" = {
    "ID": "id",
    "Name": "name",
    "Scopes": lambda row: " ".join(row["scopes"]),
    "Starts with": "start",
    "Created": "created_at",
    "Last used": "last_used_at",
    "Revoked": "revoked_at",
}


@click.group(name="platform-keys")
def platform_keys() -> None:
    """Make, list and revoke the keys of the platform's own programs."""


@platform_keys.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(keys.SCOPES),
    help="What the key may do; give it several times for several [default: all].",
)
@operator_command
def create(name: str, scopes: tuple[str, ...]) -> Answer:
    """Make a platform key for a program that NAME tells. The key is shown once."""
    with transaction(by=by_operator()) as connection:
        made, key = keys.create(connection, name, scopes)
    sentence = (
        f"{key}\nThis is platform key {made.id}, with the scopes {', '.join(made.scopes)}. It is shown once and not"
        " stored: keep it now."
    )
    return Answer({"id": made.id, "key": key, "name": made.name, "scopes": list(made.scopes)}, sentence=sentence)


@platform_keys.command(name="list")
@operator_command
def list_keys() -> Answer:
    """List the platform keys."""
    with transaction() as connection:
        rows = keys.find_all(connection)
    return Answer([document(row) for row in rows], columns=_COLUMNS)


@platform_keys.command()
@click.argument("key_id", type=RowId("platform key"))
@operator_command
def revoke(key_id: int) -> Answer:
    """Revoke a platform key at once."""
    with transaction(by=by_operator()) as connection:
        revoked_at, is_news = keys.revoke(connection, key_id)
    return revoked(f"Platform key {key_id}", key_id, revoked_at, is_news=is_news)
