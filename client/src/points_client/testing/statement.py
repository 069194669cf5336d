"""The statement of `FakePoints`."""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import httpx

from points_client.testing.accounts import Refusal
from points_client.testing.books import Books
from points_client.testing.fields import Faults, NotInFake, unknown
from points_client.testing.lists import shown

_PARAMETERS = ("from", "to")
_SUMS = ("refilled", "debited", "reversed", "returned", "batches", "transactions", "unpaid")
_DAYS_MAX = 366


def statement(books: Books, query: httpx.QueryParams) -> dict[str, Any]:
    """Return the statement that a query asks for.

    Raises:
        Refusal: the query has faults.
        NotInFake: it has a parameter or a value that `FakePoints` cannot judge.
    """
    today = books.now().date()
    first, last = _period(query, today)
    summed: dict[date, dict[str, int]] = {}
    for moment, move in _moves(books):
        day = datetime.fromisoformat(moment).date()
        # What was stamped ahead, before the clock was put back, counts today until its day comes.
        sums = summed.setdefault(last if last == today < day else day, dict.fromkeys(_SUMS, 0))
        for name, figure in move.items():
            sums[name] += figure
    balance = sum(_change(sums) for day, sums in summed.items() if day < first)
    days: list[dict[str, Any]] = []
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        days.append({"date": day.isoformat(), **_line(balance, summed.get(day, dict.fromkeys(_SUMS, 0)))})
        balance = days[-1]["closing_balance"]
    total = _line(days[0]["opening_balance"], {name: sum(day[name] for day in days) for name in _SUMS})
    return {"from": first.isoformat(), "to": last.isoformat(), "days": days, "total": total}


def _moves(books: Books) -> Iterator[tuple[str, dict[str, int]]]:
    for moment, amount in books.refills:
        yield moment, {"refilled": amount}
    for batch in books.batches.values():
        if (counts := batch["counts"]) is not None:
            move = {"debited": batch["amount"], "batches": 1, "transactions": counts["recipients"]}
            yield batch["issued_at"], move | {"unpaid": counts["unpaid"]}


def _change(sums: dict[str, int]) -> int:
    return sums["refilled"] - sums["debited"] + sums["reversed"] + sums["returned"]


def _line(opening: int, sums: dict[str, int]) -> dict[str, int]:
    return {"opening_balance": opening, **sums, "closing_balance": opening + _change(sums)}


def _period(query: httpx.QueryParams, today: date) -> tuple[date, date]:
    faults, values = Faults(), dict(query)
    if len(values) != len(query.multi_items()):
        raise NotInFake("a parameter that is given twice")
    for name in values:
        if name not in _PARAMETERS:
            faults.add(name, unknown(name, _PARAMETERS, "this call", "parameter"))
    days = {name: _day(name, values[name], faults) for name in _PARAMETERS if name in values}
    for name in _PARAMETERS:
        if name not in values:
            faults.add(name, f"The {name} parameter is required.")
    first, last = days.get("from"), days.get("to")
    if not faults and first is not None and last is not None:
        if not (sentences := _period_faults(first, last, today)):
            return first, last
        faults.update(sentences)
    raise Refusal(400, None, faults)


def _day(name: str, text: str, faults: Faults) -> date | None:
    try:
        if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    faults.add(name, f"The {name} parameter must be a day of the calendar, such as 2026-01-31, but is {shown(text)}.")
    return None


def _period_faults(first: date, last: date, today: date) -> dict[str, list[str]]:
    count = (last - first).days + 1
    if last > today:
        return {"to": [f"The to parameter must not be after today in UTC, {today}, but is {last}."]}
    if count < 1:
        sentence = f"The from parameter must not be after the to parameter, but {first} is after {last}."
    elif count > _DAYS_MAX:
        sentence = f"The from and to parameters must span at most {_DAYS_MAX} days, but {first} to {last} are {count}."
    else:
        return {}
    return {"from": [sentence], "to": [sentence]}
