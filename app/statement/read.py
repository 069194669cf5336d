"""The statement of an organization in a mode: a row for each day in UTC, each opening as the day before closed."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from sqlalchemy import Connection, Row, text

from app.errors import InvalidRequest
from app.noun import Noun
from app.noun_fields import Points, Shown, says
from app.scope import Scope

DAYS_MAX = 366

# All that moves a balance: each row with the moment that puts it on a day, and what it adds to that day.
# A batch counts when it was issued, a reversal when it was done. A correction and a reset of the sandbox are refills,
# which may take points away. The columns have the same type in all parts, so that PostgreSQL looks each part up in its
# index.
MOVES = """
    SELECT organization_id, sandbox, issued_at AS moment, CAST(0 AS bigint) AS refilled, debited_amount AS debited,
           CAST(0 AS bigint) AS reversed, CAST(0 AS bigint) AS returned, 1 AS batches, recipient_count AS transactions,
           recipient_count - debited_count AS unpaid
    FROM batches WHERE issued_at IS NOT NULL
    UNION ALL
    SELECT organization_id, sandbox, created_at, amount, CAST(0 AS bigint), CAST(0 AS bigint), CAST(0 AS bigint),
           0, 0, 0
    FROM refills
    UNION ALL
    SELECT organization_id, sandbox, done_at, CAST(0 AS bigint), CAST(0 AS bigint),
           CASE WHEN is_return THEN 0 ELSE reversed_amount END, CASE WHEN is_return THEN reversed_amount ELSE 0 END,
           0, 0, 0
    FROM reversals WHERE done_at IS NOT NULL"""

# What is summed of a day.
SUMS = ("refilled", "debited", "reversed", "returned", "batches", "transactions", "unpaid")

DAY_OF_MOMENT = "CAST(moment AT TIME ZONE 'UTC' AS date)"


def begin_of(day: str) -> str:
    """Word in SQL the moment at which a day in UTC begins."""
    return f"CAST({day} AS timestamp) AT TIME ZONE 'UTC'"


_Balance = Annotated[int, Field(json_schema_extra={"format": "int64"})]
_Sum = Shown(is_sum=True)


class Line(NamedTuple):
    """All days together. `opening_balance + refilled - debited + reversed + returned = closing_balance`."""

    opening_balance: Annotated[
        _Balance,
        says(
            "The balance at the beginning. Below 0 only if points were spent at a time before that of their refill,"
            " because a clock was put back: in a sandbox, by its reset.",
            0,
        ),
        _Sum,
    ]
    refilled: Annotated[
        int, says("Points put in, less those of corrections and of resets of the sandbox.", 1_000), _Sum
    ]
    debited: Annotated[Points, says("Points of the debited transactions of batches issued then.", 100), _Sum]
    reversed: Annotated[Points, says("Points that callers took back then.", 50), _Sum]
    returned: Annotated[Points, says("Points that went back then because they were held too long.", 0), _Sum]
    closing_balance: Annotated[_Balance, says("The balance at the end; of today, the balance as it is.", 950), _Sum]
    batches: Annotated[int, says("Batches issued.", 1, ge=0)]
    transactions: Annotated[int, says("Their transactions.", 2, ge=0)]
    unpaid: Annotated[int, says("Those of the transactions that were not debited.", 0, ge=0)]


lines = Noun(Line, "day", "days", schema="StatementTotal")


class Statement(NamedTuple):
    """The days of a statement, in order, and their total."""

    days: dict[date, Line]
    total: Line

    def payload(self, figures: Callable[[Line], dict[str, Any]] = lines.document) -> dict[str, Any]:
        """Return what callers see of it; `lines.payload` is for a JSON writer that knows 64 bits only."""
        days = [{"date": day.isoformat(), **figures(line)} for day, line in self.days.items()]
        return {"from": days[0]["date"], "to": days[-1]["date"], "days": days, "total": figures(self.total)}

    def rows(self) -> list[tuple[str | int, ...]]:
        """Return the days as rows below `HEADING`."""
        return [(day.isoformat(), *line) for day, line in self.days.items()]


# The columns of a statement as a file.
HEADING = ("date", *Line._fields)


def today_of(connection: Connection, scope: Scope) -> date:
    """Return the present day in UTC, in the sandbox by its own clock."""
    today: date = connection.execute(_TODAY, {"id": scope.organization_id, "sandbox": scope.sandbox}).scalar_one()
    return today


_TODAY = text("SELECT CAST(time_of(:id, :sandbox) AT TIME ZONE 'UTC' AS date)")


def statement_of(connection: Connection, scope: Scope, *, first: date, last: date) -> Statement:
    """Return the statement of an organization in a mode, from one day to another, both included.

    Raises:
        InvalidRequest: the days are too many, in the wrong order, or not there yet.
    """
    _require_period(first, last, today_of(connection, scope))
    parameters = {"id": scope.organization_id, "sandbox": scope.sandbox, "first": first, "last": last}
    sums = {row.day: row for row in connection.execute(_SUMS, parameters)}
    closing = int(next(iter(sums.values())).balance) - _change(sums.pop(last + timedelta(days=1), None))
    days: dict[date, Line] = {}
    for number in range((last - first).days + 1):
        day = last - timedelta(days=number)
        days[day] = _line(sums.get(day), closing)
        closing = days[day].opening_balance
    in_order = dict(reversed(days.items()))
    return Statement(in_order, _total(list(in_order.values())))


def _require_period(first: date, last: date, today: date) -> None:
    count = (last - first).days + 1
    if last > today:
        raise InvalidRequest({"to": [f"The to parameter must not be after today in UTC, {today}, but is {last}."]})
    if count < 1:
        sentence = f"The from parameter must not be after the to parameter, but {first} is after {last}."
    elif count > DAYS_MAX:
        sentence = f"The from and to parameters must span at most {DAYS_MAX} days, but {first} to {last} are {count}."
    else:
        return
    raise InvalidRequest({"from": [sentence], "to": [sentence]})


def _change(sums: Row[Any] | None) -> int:
    """Return by how much a day has raised the balance."""
    return 0 if sums is None else int(sums.refilled - sums.debited + sums.reversed + sums.returned)


def _line(sums: Row[Any] | None, closing: int) -> Line:
    counted: Mapping[str, int] = {name: 0 if sums is None else int(getattr(sums, name)) for name in SUMS}
    return Line(opening_balance=closing - _change(sums), closing_balance=closing, **counted)


def _total(lines: list[Line]) -> Line:
    summed = {name: sum(getattr(line, name) for line in lines) for name in SUMS}
    return Line(opening_balance=lines[0].opening_balance, closing_balance=lines[-1].closing_balance, **summed)


# Counted days, and what is not counted yet, in one snapshot with the balance, from which the days are computed
# backwards. All that is later than the last day is a single row, of the day after it. If the last day is today, it is
# today's: only a clock that was put back has stamped it, and today closes with the balance as it is.
_SUMS = text(f"""
    WITH organization AS MATERIALIZED (
        SELECT CASE WHEN :sandbox THEN sandbox_balance ELSE balance END AS balance,
               CASE WHEN :sandbox THEN sandbox_counted_until ELSE counted_until END AS counted_until,
               CAST(time_of(id, :sandbox) AT TIME ZONE 'UTC' AS date) AS today
        FROM organizations WHERE id = :id
    ), sums AS (
        SELECT day, {", ".join(SUMS)} FROM daily_sums
        WHERE organization_id = :id AND sandbox = :sandbox AND day >= :first
          AND {begin_of("day")} < (SELECT counted_until FROM organization)
        UNION ALL
        SELECT {DAY_OF_MOMENT}, {", ".join(SUMS)} FROM ({MOVES}) moves
        WHERE organization_id = :id AND sandbox = :sandbox
          AND moment >= (SELECT greatest(counted_until, {begin_of(":first")}) FROM organization)
    )
    SELECT balance,
           CASE WHEN day <= :last OR today <= :last THEN least(day, :last) ELSE CAST(:last AS date) + 1 END AS day,
           {", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in SUMS)}
    FROM organization LEFT JOIN sums ON true
    GROUP BY 1, 2
""")
