"""`points status --organizations`: the balance of each, whether it is low, and what was issued lately."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from app import organizations
from app.statement.read import statement_of, today_of

if TYPE_CHECKING:
    from app.cli.tables import Columns

# Each takes some look-ups a day.
_SHOWN_MAX = 100
_DAYS = 7

_COLUMNS: "Columns" = {
    "ID": "id",
    "Name": "name",
    "Balance": "balance",
    "Low below": "low_balance",
    "Low": "is_low",
    "Issued today": "issued_today",
    f"Last {_DAYS} days": "issued_lately",
}


def look_at_organizations(connection: Connection) -> dict[str, Any]:
    """Return the organizations with their live figures, those with a low balance first; and whether there are more."""
    found = organizations.find_lowest(connection, at_most=_SHOWN_MAX + 1)
    shown = []
    for one in found[:_SHOWN_MAX]:
        today = today_of(connection, one.id, sandbox=False)
        first = today - timedelta(days=_DAYS - 1)
        lines = statement_of(connection, one.id, sandbox=False, first=first, last=today).days
        by_day = {day: line.debited for day, line in lines.items()}
        shown.append(
            {
                "id": one.id,
                "name": one.name,
                "balance": one.balance,
                "low_balance": one.low_balance,
                "is_low": one.low_balance is not None and one.balance < one.low_balance,
                "issued_today": by_day[today],
                "issued_lately": sum(by_day.values()),
                "issued_by_day": {str(day): issued for day, issued in reversed(by_day.items())},
            }
        )
    return {"organizations": shown, "has_more_organizations": len(found) > _SHOWN_MAX}


def print_organizations(rows: Sequence[Mapping[str, Any]], *, has_more: bool) -> None:
    """Print them for a person."""
    from app.cli.tables import print_table  # noqa: PLC0415  # Most answers of `points status` need no table.

    print()
    print_table(rows, _COLUMNS)
    if has_more:
        print(f"These are {_SHOWN_MAX}, the low ones first; `points organizations list` shows all.")
