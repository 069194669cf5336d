"""*Overview* and *Statement*: the balance, what moved it in a month, and what its points were issued for."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from flask import Response, render_template, request
from sqlalchemy import Connection

from app import organizations
from app.batches import awaiting, schedule
from app.console import files
from app.console.blueprints import LIVE, SANDBOX, current_scope, is_sandbox, pages
from app.console.caller import Authors, authors_of
from app.ledger import refill
from app.members.members import names_of
from app.pages import batch_pages
from app.pages.filters import Filters
from app.postgres.database import snapshot
from app.postgres.standby import long_read
from app.reversals.reversal import taken_back_of
from app.scope import Scope
from app.statement.makeup import Makeup, makeup_of
from app.statement.months import Month, Months, months_of, statement_of_month
from app.statement.read import HEADING, Statement, statement_of, today_of
from app.uploads.listed import senders_since


@pages.get("/statement")
def statement() -> str:
    def read(connection: Connection) -> tuple[Month, Statement, Makeup, Authors]:
        month, of_month = _of_month(connection)
        makeup = makeup_of(connection, current_scope(), first=month.first, last=month.last)
        return month, of_month, makeup, authors_of(connection, [sender for sender, _ in makeup.senders])

    month, of_month, makeup, authors = long_read(read)
    return render_template(
        "console/statement.html",
        month=month,
        days=of_month.days,
        total=of_month.total,
        bars=bars({day: line.debited for day, line in of_month.days.items()}),
        makeup=makeup,
        authors=authors,
    )


@pages.get("/statement.csv", defaults={"kind": files.CSV})
@pages.get("/statement.xlsx", defaults={"kind": files.XLSX})
def statement_file(kind: str) -> Response:
    month, of_month = long_read(_of_month)
    name = f"statement-{month.name}-{SANDBOX if is_sandbox() else LIVE}"
    return files.file(kind, name, HEADING, of_month.rows(), lines=len(of_month.days))


def _of_month(connection: Connection) -> tuple[Month, Statement]:
    _, month, of_month = statement_of_month(connection, current_scope(), request.args.get("month"))
    return month, of_month


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


_BATCHES_SHOWN = 10
_REFILLS_SHOWN = 5
_SENDERS_SHOWN = 5
_DAYS_SHOWN = 30


@pages.get("")
def overview() -> str:
    scope = current_scope()
    with snapshot() as connection:
        today = today_of(connection, scope)
        months_ago = (today.replace(day=1) - timedelta(days=1)).replace(day=1)
        first = min(months_ago, today - timedelta(days=_DAYS_SHOWN - 1))
        organization = organizations.get(connection, scope)
        scheduled = schedule.scheduled_of(connection, scope)
        waiting = awaiting.count_awaiting(connection, scope)
        held = organizations.held_of(connection, scope)
        low_balance = organizations.get_whole(connection, scope.organization_id).low_balance
        refills = refill.latest(connection, scope, at_most=_REFILLS_SHOWN)
        lines = statement_of(connection, scope, first=first, last=today).days
        by_day = {day: line.debited for day, line in lines.items()}
        months = months_of(by_day, today)
        senders = _senders(connection, scope, months)
        every = Filters(**scope._asdict())
        # The last, because it changes PostgreSQL's planner settings.
        late = batch_pages.page(connection, every, start=None, limit=_BATCHES_SHOWN)
        taken_back = taken_back_of(connection, [batch.id for batch in late.rows])
    recent = dict(list(by_day.items())[-_DAYS_SHOWN:])
    issued = sum(recent.values())
    return render_template(
        "console/overview.html",
        organization=organization,
        # The limit is for the live balance only.
        low_balance=None if scope.sandbox else low_balance,
        lasts_days=organization.balance * _DAYS_SHOWN // issued if issued > 0 else None,
        scheduled=scheduled,
        awaiting=waiting,
        batches=late.rows,
        taken_back=taken_back,
        held=held,
        months=months,
        issued=issued,
        bars=bars(recent),
        senders=senders,
        refills=refills,
    )


def _senders(connection: Connection, scope: Scope, months: Months) -> list[tuple[int | None, str, int]]:
    """Return who had most points issued this month: the id and name of each member, and what the API sent (no id)."""
    since = datetime.combine(months.first_day, time(), UTC)
    members = senders_since(connection, scope, since=since)
    names = names_of(connection, [row.member_id for row in members])
    senders: list[tuple[int | None, str, int]] = [(row.member_id, names[row.member_id], row.points) for row in members]
    by_programs = months.so_far - sum(row.points for row in members)
    if by_programs > 0:
        senders.append((None, "Programs, by the API", by_programs))
    return sorted(senders, key=lambda row: -row[2])[:_SENDERS_SHOWN]
