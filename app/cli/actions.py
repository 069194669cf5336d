"""`points actions`: who did what, and when."""

from collections.abc import Mapping
from typing import Any

import click

from app import organizations
from app.cli.answer import Answer, Columns
from app.cli.operator_command import limit_option, operator_command, rows_of
from app.cli.options import ORGANIZATION_ID, in_words_of_options
from app.errors import InvalidRequest
from app.pages import action_pages
from app.postgres.database import transaction


def _author(row: Mapping[str, Any]) -> str:
    by = row["by"]
    if by is None:
        return "unknown"
    which = f" {by['id']}" if by["id"] is not None else ""
    return f"{by['type'].replace('_', ' ')}{which} ({by['name']})"


def _organization(row: Mapping[str, Any]) -> str:
    return "–" if row["organization"] is None else str(row["organization"]["id"])


_COLUMNS: Columns = {
    "ID": "id",
    "When": "created_at",
    "Who": _author,
    "What": "action",
    "Organization": _organization,
    "Its ID": "subject_id",
    "Sandbox": "sandbox",
    "More": "detail",
}


@click.command()
@click.option("--organization", type=ORGANIZATION_ID, help="Only what concerns the organization of this id.")
@click.option(
    "--by", help="Only by: member, platform_key or operator; or one of them, as member:7, platform_key:3, operator:ada."
)
@click.option("--created-from", metavar="TIME", help="At this time or later, such as 2026-01-31T00:00:00Z.")
@click.option("--created-to", metavar="TIME", help="At this time or earlier.")
@limit_option
@operator_command
def actions(limit: int, **filters: Any) -> Answer:
    """Show who did what, newest first: operators by commands, the platform's programs, and members in the console."""
    query = {name: [str(value)] for name, value in filters.items() if value is not None}
    try:
        rows = rows_of("actions", action_pages.page, query, at_most=limit)
    except InvalidRequest as error:
        options = {name: f"--{name.replace('_', '-')}" for name in filters}
        raise click.UsageError(in_words_of_options(error.faults, options)) from None
    if not rows and filters["organization"] is not None:
        with transaction() as connection:
            organizations.get(connection, filters["organization"], sandbox=False)  # None would hide a wrong id.
    return Answer(list(map(action_pages.actions.document, rows)), columns=_COLUMNS)
