"""`points users`: register users, one or many, show, change and erase them. Registering claims what is held."""

from pathlib import Path

import click
from sqlalchemy import Connection

from app import users as rows
from app.cli.answer import Answer, columns, document
from app.cli.operator_command import (
    by_operator,
    change_command,
    limit_option,
    operator_command,
    read_command,
    rows_of,
)
from app.cli.options import RowId, workbook_options
from app.erasing.erase import erase_user
from app.errors import InvalidRequest, Refused
from app.ledger.claim import claims
from app.ledger.registering import change_user, read_changes, register_user
from app.pages import entry_pages
from app.postgres.database import single_statement
from app.settings import settings
from app.values.numbers import counted, points

_COLUMNS = columns("id", "email", "first_name", "last_name", ("External ID", "external_id"), "balance")
_OF_ENTRIES = columns(
    ("When", "created_at"),
    ("Points", "amount"),
    *("type", "transaction_id"),
    ("Organization", lambda row: f"{row['organization']['id']} {row['organization']['name']}"),
    *("label", "reference"),
)
_BAD_ROWS_SHOWN_MAX = 100
_user_argument = click.argument("user_id", metavar="ID", type=RowId("user"))


@click.group()
def users() -> None:
    """Register, show, change and erase users."""


@users.command()
@click.argument("email")
@click.argument("first_name")
@click.argument("last_name")
@change_command
def create(connection: Connection, email: str, first_name: str, last_name: str) -> Answer:
    """Register a user. Points held for the address are credited."""
    user = rows.new_user(email, first_name, last_name)
    registration = register_user(connection, user)
    if not registration.is_new:
        raise Refused(f"A user is registered as {user.address.text} already.")
    return Answer(registration.user, columns=_COLUMNS)


@users.command()
@click.argument("email")
@read_command
def show(connection: Connection, email: str) -> Answer:
    """Show the user registered under an address, with the balance."""
    return Answer(rows.get(connection, email), columns=_COLUMNS)


@users.command()
@_user_argument
@click.option("--email", help="The user is known by this address from then on, and claims what is held for it.")
@click.option("--first-name", help="The first name.")
@click.option("--last-name", help="The last name; it may be blank.")
@click.option("--external-id", help="Your own id of the account.")
@change_command
def change(connection: Connection, user_id: int, **given: str | None) -> Answer:
    """Change the address, the names or the external id of a user. What was paid to the old address stays."""
    fields = {name: value for name, value in given.items() if value is not None}
    if not fields:
        raise click.UsageError("Nothing is changed: give --email, --first-name, --last-name or --external-id.")
    try:
        changes = read_changes(fields, settings())
    except InvalidRequest as error:
        raise Refused(" ".join(sentence for sentences in error.faults.values() for sentence in sentences)) from None
    changed = change_user(connection, user_id, changes)
    claimed = changed.claimed
    sentence = f"Claimed: {counted(claimed.points, 'point')}." if claimed.transactions else None
    return Answer(document(changed.user, claimed=claims.document(claimed)), columns=_COLUMNS, sentence=sentence)


@users.command()
@_user_argument
@limit_option
@operator_command
def entries(user_id: int, limit: int) -> Answer:
    """Show what made the balance of a user, newest first: credits, and what was taken back of them."""
    with single_statement() as connection:
        rows.require(connection, user_id)
    newest = rows_of("entries", entry_pages.page, {}, at_most=limit, user_id=user_id)
    return Answer(list(map(entry_pages.entries.document, newest)), columns=_OF_ENTRIES)


@users.command()
@_user_argument
@operator_command
def erase(user_id: int) -> Answer:
    """Erase a user for good: the names and addresses, wherever they are, become erased-ID.

    The id, the balance and the books stay. Given again, it goes on where it was interrupted.
    """
    user = erase_user(user_id, by=by_operator())
    return Answer(user, columns=_COLUMNS, sentence=f"User {user_id} is erased for good.")


@users.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@workbook_options
@operator_command
def import_file(file: Path, sheet: str | None = None, hidden_rows: str | None = None) -> Answer:
    """Register the users of a list: a workbook (.xlsx, .xls, .ods), or a CSV file in UTF-8, UTF-16 or Windows-1252.

    A heading names the columns email, first_name and last_name, in any order, and may name external_id,
    your own ids of the users: then a row in conflict with a user who is registered is a bad one. The
    last name may be blank, for people with one name. Rows are committed in groups of 20,000, or of fewer
    if much is held for them. Importing a file again is harmless: users who are registered already stay
    unchanged. So after an interruption, just give the command again. Bad rows are named with their
    lines, and written with the reasons to a file beside the list: people.errors.csv for people.csv.
    Exit status 1 when there are bad rows; the others are registered all the same.
    """
    from app.cli.users_import import import_users  # noqa: PLC0415  # Slow, and not needed to show a user.

    counts = import_users(file, sheet=sheet, hidden_rows=hidden_rows)
    # Show all of them if there is no file of them.
    bad, shown_max = counts.bad_rows, None if counts.errors_file is None else _BAD_ROWS_SHOWN_MAX
    faults = [f"line {row.line}: {row.reason}" for row in bad[:shown_max]]
    if counts.errors_file is not None:
        more = f"… and {points(len(bad) - len(faults))} more. " if len(bad) > len(faults) else ""
        faults.append(f"{more}The bad rows, with the reasons: {counts.errors_file}")
    sentence = (
        f"{points(counts.registered)} registered, {points(counts.already_registered)} registered already,"
        f" {counted(len(bad), 'bad row')}."
    )
    if counts.not_used:
        sentence += f" Not used: {', '.join(counts.not_used)}."
    outcome = {
        "registered": counts.registered,
        "already_registered": counts.already_registered,
        "bad": len(bad),
        "bad_rows": [row._asdict() for row in bad],
        "errors_file": counts.errors_file,
        "not_used": counts.not_used,
    }
    return Answer(outcome, sentence=sentence, faults=faults, exit_status=1 if bad else 0)
