"""`points statement` and `points actions`: what moved a balance, and who did what."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from app import organizations
from app.cli.answer import Answer, columns
from app.cli.operator_command import limit_option, operator_command, rows_of
from app.cli.options import ORGANIZATION_ID, in_words_of_options
from app.errors import InvalidRequest
from app.pages import action_pages
from app.postgres.database import single_statement
from app.postgres.standby import long_read
from app.scope import Scope
from app.statement.months import statement_of_month
from app.statement.read import HEADING
from app.values.numbers import points

_OF_STATEMENT = columns(*HEADING)


@click.command()
@click.argument("organization_id", type=ORGANIZATION_ID)
@click.option("--month", metavar="YYYY-MM", help="The month, such as 2026-01 [default: this month, up to today].")
@click.option("--sandbox", is_flag=True, help="Of the sandbox balance instead of the live one.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the days as CSV.")
@operator_command
def statement(organization_id: int, month: str | None, sandbox: bool, as_csv: bool) -> Answer:
    """Show what moved a balance in a month, day by day.

    Days are in UTC, and the last line is their total. A batch counts on the day on which it was issued, a reversal on
    that on which it was done. Each day opens with the balance at which the day before closed.
    """
    scope = Scope(organization_id, sandbox)
    organization, days, of_month = long_read(partial(statement_of_month, scope=scope, text=month))
    document = {**scope._asdict(), **of_month.payload()}
    if as_csv:
        lines = (HEADING, *of_month.rows())  # Days and numbers: nothing to quote.
        return Answer(document, sentence="\n".join(",".join(map(str, line)) for line in lines))
    sentence = (
        f"{organization.name}, {'sandbox' if sandbox else 'live'}, {days.name}: the balance was"
        f" {points(of_month.total.opening_balance)}, and then {points(of_month.total.closing_balance)} points."
    )
    rows = [*document["days"], {"date": "total", **document["total"]}]
    return Answer(document, rows=rows, columns=_OF_STATEMENT, sentence=sentence)


def _author(row: Mapping[str, Any]) -> str:
    by = row["by"]
    if by is None:
        return "unknown"
    which = f" {by['id']}" if by["id"] is not None else ""
    return f"{by['type'].replace('_', ' ')}{which} ({by['name']})"


def _organization(row: Mapping[str, Any]) -> str:
    return "–" if row["organization"] is None else str(row["organization"]["id"])


_OF_ACTIONS = columns(
    *("id", ("When", "created_at"), ("Who", _author), ("What", "action")),
    *(("Organization", _organization), ("Its ID", "subject_id"), "sandbox", ("More", "detail")),
)


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
        with single_statement() as connection:
            organizations.get(connection, Scope(filters["organization"], sandbox=False))  # None would hide a wrong id.
    return Answer(list(map(action_pages.actions.document, rows)), columns=_OF_ACTIONS)
