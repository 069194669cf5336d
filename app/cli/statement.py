"""`points statement`: what moved an organization's balance in a month, day by day."""

from datetime import UTC

import click
from sqlalchemy import Connection

from app import organizations
from app.cli.answer import Answer
from app.cli.operator_command import operator_command
from app.cli.options import ORGANIZATION_ID
from app.postgres.standby import long_read
from app.statement.months import Month, month_of
from app.statement.read import HEADING, Statement, statement_of, today_of
from app.values.numbers import points

_COLUMNS = {name.replace("_", " ").capitalize(): name for name in HEADING}


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

    def read(connection: Connection) -> tuple[organizations.OrganizationInMode, Month, Statement]:
        organization = organizations.get(connection, organization_id, sandbox=sandbox)
        today = today_of(connection, organization_id, sandbox=sandbox)
        days = month_of(month, today, began=organization.created_at.astimezone(UTC).date())
        statement = statement_of(connection, organization_id, sandbox=sandbox, first=days.first, last=days.last)
        return organization, days, statement

    organization, days, found = long_read(read)
    document = {"organization_id": organization_id, "sandbox": sandbox, **found.payload()}
    if as_csv:
        lines = (HEADING, *found.rows())  # Days and numbers: nothing to quote.
        return Answer(document, sentence="\n".join(",".join(map(str, line)) for line in lines))
    sentence = (
        f"{organization.name}, {'sandbox' if sandbox else 'live'}, {days.name}: the balance was"
        f" {points(found.total.opening_balance)}, and then {points(found.total.closing_balance)} points."
    )
    rows = [*document["days"], {"date": "total", **document["total"]}]
    return Answer(document, rows=rows, columns=_COLUMNS, sentence=sentence)
