"""The statement of a month, and the points of this month beside the last."""

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, date, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from app import organizations
from app.errors import PointsError
from app.organizations import OrganizationInMode
from app.scope import Scope
from app.statement.read import Statement, statement_of, today_of
from app.values.texts import shown

_FORM = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")


class NoSuchMonth(PointsError):
    """A text names no month, or a month that is not there yet."""

    status = 400
    field = "month"


class Month(NamedTuple):
    """A month that has begun, up to its last day or today.

    `before` and `after` name its neighbours: those in which the organization was there, and which have begun.
    """

    first: date
    last: date
    before: str | None
    after: str | None

    @property
    def name(self) -> str:
        return _name(self.first)


def statement_of_month(
    connection: Connection, scope: Scope, text: str | None
) -> tuple[OrganizationInMode, Month, Statement]:
    """Return the statement of a month, by its name or None for the present one, with the month and the organization.

    Raises:
        NotFound: there is no such organization.
        NoSuchMonth: there is no such month, or it has not begun.
    """
    organization = organizations.get(connection, scope)
    today = today_of(connection, scope)
    month = month_of(text, today, began=organization.created_at.astimezone(UTC).date())
    return organization, month, statement_of(connection, scope, first=month.first, last=month.last)


def month_of(text: str | None, today: date, *, began: date) -> Month:
    """Return a month by its name, such as 2026-01; None: the present one. The organization `began` on that day.

    Raises:
        NoSuchMonth: there is no such month, or it has not begun.
    """
    parts = _FORM.fullmatch(_name(today) if text is None else text)
    year, month = (int(parts[1]), int(parts[2])) if parts else (0, 0)
    if year == 0 or date(year, month, 1) > today:
        sentence = f"The month must be one up to {_name(today)}, but is {shown(text or '')}."
        raise NoSuchMonth(sentence)
    first, last = date(year, month, 1), date(year, month, monthrange(year, month)[1])
    return Month(
        first,
        min(last, today),
        before=None if first <= began else _name(first - timedelta(days=1)),
        after=None if last >= today else _name(last + timedelta(days=1)),
    )


def _name(day: date) -> str:
    return day.isoformat()[: len("2026-01")]


class Months(NamedTuple):
    """The points of this month so far and of the last month: up to the same day of the month, and whole."""

    first_day: date
    so_far: int
    last_so_far: int
    last: int


def months_of(by_day: Mapping[date, int], today: date) -> Months:
    """Return the points of this month and the last, from those of each day."""
    first_day = today.replace(day=1)
    last_day = first_day - timedelta(days=1)
    same_day = last_day.replace(day=min(today.day, monthrange(last_day.year, last_day.month)[1]))
    last_first = last_day.replace(day=1)

    def between(first: date, last: date) -> int:
        return sum(points for day, points in by_day.items() if first <= day <= last)

    return Months(first_day, between(first_day, today), between(last_first, same_day), between(last_first, last_day))
