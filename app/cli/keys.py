"""`points keys`: make, list and revoke API keys."""

import click

from app import api_keys, organizations
from app.cli.answer import Answer
from app.cli.operator_command import by_operator, document, operator_command
from app.cli.options import ORGANIZATION_ID, RowId
from app.postgres.database import transaction
from app.values.numbers import moment
from app.values.texts import with_name

_COLUMNS = {
    "ID": "id",
    "Name": "name",
    "Mode": "mode",
    "Starts with": "start",
    "Created": "created_at",
    "Last used": "last_used_at",
    "Revoked": "revoked_at",
}


@click.group()
def keys() -> None:
    """Make, list and revoke API keys."""


@keys.command()
@click.argument("organization_id", type=ORGANIZATION_ID)
@click.option("--development", is_flag=True, help="A key for the sandbox.")
@click.option("--name", help="What people call it, such as the program that uses it: up to 100 characters.")
@operator_command
def create(organization_id: int, development: bool, name: str | None) -> Answer:
    """Make an API key. It is shown once."""
    with transaction(by=by_operator()) as connection:
        api_key_id, key = api_keys.create(connection, organization_id, sandbox=development, name=name)
        name = api_keys.names_of(connection, [api_key_id])[api_key_id]
    title = with_name(f"{'development' if development else 'live'} key {api_key_id}", name)
    sentence = f"{key}\nThis is {title}. It is shown once and not stored: keep it now."
    return Answer(
        {"id": api_key_id, "key": key, "name": name, "organization_id": organization_id, "sandbox": development},
        sentence=sentence,
    )


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
    sentence = f"{title} {'is revoked' if is_news else f'was revoked already, at {moment(revoked_at)}'}."
    return Answer({"id": key_id, "revoked": True, "revoked_at": revoked_at}, sentence=sentence)
