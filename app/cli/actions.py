"""`points actions`: who did what, and when."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from app import organizations
from app.cli.answer import Answer
from app.cli.operator_command import operator_command
from app.cli.options import ORGANIZATION_ID, in_words_of_options
from app.cli.pages import rows_of
from app.errors import InvalidRequest
from app.pages import action_pages
from app.pages.parameters import LIMIT_DEFAULT
from app.pages.queries import parse_page_request
from app.postgres.database import transaction

if TYPE_CHECKING:
    from app.cli.tables import Columns


def _author(row: Mapping[str, Any]) -> str:
    by = row["by"]
    if by is None:
        return "unknown"
    which = f" {by['id']}" if by["id"] is not None else ""
    return f"{by['type'].replace('_', ' ')}{which} ({by['name']})"


def _organization(row: Mapping[str, Any]) -> str:
    return "–" if row["organization"] is None else str(row["organization"]["id"])


_COLUMNS: "Columns" = {
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
@click.option("--limit", type=click.IntRange(1), default=LIMIT_DEFAULT, show_default=True, help="At most so many.")
@operator_command
def actions(limit: int, **filters: str | int | None) -> Answer:
    """Show who did what, newest first: operators by commands, the platform's programs, and members in the console."""
    query = {name: [str(value)] for name, value in filters.items() if value is not None}
    try:
        asked = parse_page_request("actions", query, None)
    except InvalidRequest as error:
        options = {name: f"--{name.replace('_', '-')}" for name in filters}
        raise click.UsageError(in_words_of_options(error.faults, options)) from None
    if "organization" in query:
        with transaction() as connection:
            organizations.get(connection, asked.filters.organization_id, sandbox=False)  # None would hide a wrong id.
    rows = rows_of(action_pages.page, asked, at_most=limit)
    return Answer(list(map(action_pages.actions.document, rows)), columns=_COLUMNS)
