"""*Statement*: what moved the balance in a month, day by day, and what its points were issued for; also as a file."""

from collections.abc import Mapping
from datetime import UTC, date
from typing import NamedTuple

from flask import Response, render_template, request
from sqlalchemy import Connection

from app import organizations
from app.console import files
from app.console.blueprints import current_scope, is_sandbox, pages
from app.console.caller import Authors, authors_of
from app.postgres.database import single_statement
from app.postgres.standby import long_read
from app.statement.makeup import Makeup, makeup_of
from app.statement.months import Month, month_of
from app.statement.read import HEADING, Statement, statement_of, today_of


@pages.get("/statement")
def statement() -> str:
    month, found = _of_month()
    organization_id, sandbox = current_scope()

    def read(connection: Connection) -> tuple[Makeup, Authors]:
        makeup = makeup_of(connection, organization_id, sandbox=sandbox, first=month.first, last=month.last)
        return makeup, authors_of(connection, [sender for sender, _ in makeup.senders])

    makeup, authors = long_read(read, within=single_statement)
    return render_template(
        "console/statement.html",
        month=month,
        days=found.days,
        total=found.total,
        bars=bars({day: line.debited for day, line in found.days.items()}),
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
    organization_id, sandbox = current_scope()

    def read(connection: Connection) -> tuple[Month, Statement]:
        began = organizations.get(connection, organization_id, sandbox=sandbox).created_at.astimezone(UTC).date()
        today = today_of(connection, organization_id, sandbox=sandbox)
        month = month_of(request.args.get("month"), today, began=began)
        found = statement_of(connection, organization_id, sandbox=sandbox, first=month.first, last=month.last)
        return month, found

    return long_read(read, within=single_statement)


# The size of the picture, in its own units; a page scales it.
WIDTH, HEIGHT = 600, 140
_GAP = 4


class Bar(NamedTuple):
    """A bar with the day and the points that it stands for; `y` counts from the top."""

    day: date
    points: int
    x: float
    y: float
    width: float
    height: float


def bars(by_day: Mapping[date, int]) -> list[Bar]:
    """Return the bars of some days, side by side; the highest is as high as the picture."""
    most, step = max(by_day.values(), default=0), WIDTH / max(len(by_day), 1)
    drawn = []
    for number, (day, points) in enumerate(by_day.items()):
        height = round(HEIGHT * points / most, 1) if points > 0 else 0.0
        height = max(height, 1.5) if points > 0 else height  # A day with few points is seen too.
        drawn.append(Bar(day, points, round(number * step, 1), HEIGHT - height, round(step - _GAP, 1), height))
    return drawn
