"""*Statement*: what moved the balance in a month, day by day, and what its points were issued for; also as a file."""

from datetime import UTC

from flask import Response, render_template, request
from sqlalchemy import Connection

from app import api_keys, organizations
from app.console import chart, files
from app.console.authors import Authors
from app.console.blueprints import current_member, is_sandbox, pages
from app.members.members import names_of
from app.postgres.database import single_statement
from app.postgres.standby import long_read
from app.statement.makeup import Makeup, makeup_of
from app.statement.months import Month, month_of
from app.statement.read import HEADING, Statement, statement_of, today_of


@pages.get("/statement")
def statement() -> str:
    month, found = _of_month()
    organization_id, sandbox = current_member().organization_id, is_sandbox()

    def read(connection: Connection) -> tuple[Makeup, Authors]:
        makeup = makeup_of(connection, organization_id, sandbox=sandbox, first=month.first, last=month.last)
        senders = [sender for sender, _ in makeup.senders]
        authors = Authors(
            names_of(connection, {one.member_id for one in senders if one.member_id is not None}),
            api_keys.names_of(connection, {one.api_key_id for one in senders if one.api_key_id is not None}),
        )
        return makeup, authors

    makeup, authors = long_read(read, within=single_statement)
    return render_template(
        "console/statement.html",
        month=month,
        days=found.days,
        total=found.total,
        bars=chart.bars({day: line.debited for day, line in found.days.items()}),
        makeup=makeup,
        authors=authors,
    )


@pages.get("/statement.csv", defaults={"kind": files.CSV})
@pages.get("/statement.xlsx", defaults={"kind": files.XLSX})
def statement_file(kind: str) -> Response:
    month, found = _of_month()
    name = f"statement-{month.name}{'-sandbox' if is_sandbox() else ''}"
    return files.file(kind, name, HEADING, found.rows(), lines=len(found.days))


def _of_month() -> tuple[Month, Statement]:
    organization_id, sandbox = current_member().organization_id, is_sandbox()

    def read(connection: Connection) -> tuple[Month, Statement]:
        began = organizations.get(connection, organization_id, sandbox=sandbox).created_at.astimezone(UTC).date()
        today = today_of(connection, organization_id, sandbox=sandbox)
        month = month_of(request.args.get("month"), today, began=began)
        found = statement_of(connection, organization_id, sandbox=sandbox, first=month.first, last=month.last)
        return month, found

    return long_read(read, within=single_statement)
