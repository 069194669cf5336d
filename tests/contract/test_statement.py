"""The statement: one row a day that adds up, of the key's mode, exact at any moment, by HTTP and by the command."""

import csv
import io
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from tests.contract.calls import Key, Organization, address, addresses, organization, refusal, success
from tests.contract.reversing import reverse
from tests.deadline import until
from tests.service.up import Service

_SUMS = ("refilled", "debited", "reversed", "returned", "batches", "transactions", "unpaid")
_LINE = {"opening_balance", "closing_balance", *_SUMS}
_DAY = timedelta(days=1)


def _statement(key: Key, first: date, last: date) -> dict[str, Any]:
    """Return a statement, once it is seen to add up."""
    found: dict[str, Any] = success(key.get("/v1/statement", **{"from": str(first), "to": str(last)}))
    assert set(found) == {"from", "to", "days", "total"}
    assert (found["from"], found["to"]) == (str(first), str(last))
    days, total = found["days"], found["total"]
    assert [day["date"] for day in days] == [str(first + number * _DAY) for number in range((last - first).days + 1)]
    for line in (*days, total):
        assert set(line) - {"date"} == _LINE
        assert all(type(line[name]) is int for name in _LINE)
        gone_back = line["reversed"] + line["returned"]
        assert line["opening_balance"] + line["refilled"] - line["debited"] + gone_back == line["closing_balance"]
    assert [day["opening_balance"] for day in days[1:]] == [day["closing_balance"] for day in days[:-1]]
    assert (total["opening_balance"], total["closing_balance"]) == (
        days[0]["opening_balance"],
        days[-1]["closing_balance"],
    )
    assert {name: total[name] for name in _SUMS} == {name: sum(day[name] for day in days) for name in _SUMS}
    return found


def _on(found: dict[str, Any], day: date) -> dict[str, int]:
    """Return what is not 0 of the sums of a day."""
    [line] = [line for line in found["days"] if line["date"] == str(day)]
    return {name: line[name] for name in _SUMS if line[name]}


def _up_to_today(key: Key, days: int) -> dict[str, Any]:
    """Return the statement of so many days up to today, also if it is midnight just now."""
    while True:
        today = datetime.now(UTC).date()
        found = _statement(key, today - (days - 1) * _DAY, today)
        if datetime.now(UTC).date() == today:
            return found


def _read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def _go_to(key: Key, moment: datetime) -> date:
    success(key.call("POST", "/v1/sandbox/clock", json={"now": moment.isoformat()}))
    return moment.date()


@pytest.fixture(scope="module")
def moved(service: Service) -> Organization:
    """Make an organization whose sandbox has had days on which the balance was moved in every way."""
    made = organization(service, 70, sandbox_balance=1_000)
    key = made.development
    start = _go_to(key, (datetime.now(UTC) + _DAY).replace(hour=12))
    first = success(key.send({"recipients": addresses(3), "amount": 100}), 201)
    key.send({"recipients": addresses(2), "amount": 400, "hold_days": 1})  # The balance pays one of them.
    second = _go_to(key, datetime.combine(start + 2 * _DAY, time(), UTC))
    until(lambda: key.balance == 700, "what was held for a day has returned", every_s=0.2)
    success(reverse(key, {"transactions": [one["id"] for one in first["transactions"]], "amount": 50}), 201)
    key.send({"recipient": address(), "amount": 10})
    third = _go_to(key, datetime.combine(second + 3 * _DAY, time(20), UTC))
    key.send({"recipient": address(), "amount": 10_000})
    found = _statement(key, start - _DAY, third)
    assert _on(found, start) == {"debited": 700, "batches": 2, "transactions": 5, "unpaid": 1}
    assert _on(found, second) == {"reversed": 150, "returned": 400, "debited": 10, "batches": 1, "transactions": 1}
    assert _on(found, second + _DAY) == {}
    assert _on(found, third) == {"batches": 1, "transactions": 1, "unpaid": 1}
    assert found["total"]["closing_balance"] == key.balance == 840
    return made


def test_each_day_tells_what_moved_the_balance_by_the_clock_of_its_mode(moved: Organization) -> None:
    key = moved.development
    success(key.call("POST", "/v1/sandbox/reset"))
    total = _up_to_today(key, 4)["total"]
    assert total["closing_balance"] == key.balance == 1_000
    assert total["refilled"] == 1_160, "the opening balance, and what the reset has put in"
    assert total["batches"] == 4, "what was stamped ahead of the clock counts today, until its day comes"
    live = _up_to_today(moved.live, 2)["total"]
    assert (live["refilled"], live["closing_balance"], live["batches"]) == (70, 70, 0)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({}, {"from", "to"}),
        ({"from": "2026-01-01"}, {"to"}),
        ({"from": "", "to": "2026-01-01"}, {"from"}),
        ({"from": "2026-02-30", "to": "2026-1-1"}, {"from", "to"}),
        ({"from": "2026-W01-1", "to": "20260101"}, {"from", "to"}),
        ({"from": "2026-01-01T00:00:00Z", "to": "٢٠٢٦-٠١-٠١"}, {"from", "to"}),
        ({"from": ["2026-01-01", "2026-01-02"], "to": "2026-01-02"}, {"from"}),
        ({"from": "2026-01-02", "to": "2026-01-01"}, {"from", "to"}),
        ({"from": "2025-01-01", "to": "2026-01-02"}, {"from", "to"}),
        ({"from": "2026-01-01", "to": "2026-01-01", "form": "x"}, {"form"}),
        ({"from": "9999-12-31", "to": "9999-12-31"}, {"to"}),
    ],
)
def test_a_bad_period_is_a_fault_of_its_parameters(acme: Organization, query: dict[str, Any], fields: set[str]) -> None:
    errors = refusal(acme.live.get("/v1/statement", **query), 400, *fields)
    if "form" in fields:
        assert errors["form"] == ["There is no parameter of this name: did you mean from?"]


def test_a_query_that_is_not_in_utf_8_is_a_fault(acme: Organization) -> None:
    refusal(acme.live.get("/v1/statement?from=2026-01-01&to=%FF"), 400, "to")


def test_a_statement_begins_with_the_calendar_and_ends_today(acme: Organization) -> None:
    first = _statement(acme.live, date(1, 1, 1), date(1, 12, 31))
    assert not any(first["total"].values())
    assert len(_up_to_today(acme.live, 366)["days"]) == 366
    tomorrow = datetime.now(UTC).date() + 2 * _DAY
    [told] = refusal(acme.live.get("/v1/statement", **{"from": "2026-01-01", "to": str(tomorrow)}), 400, "to")["to"]
    assert told.startswith("The to parameter must not be after today in UTC, ")


def test_the_command_shows_a_month_as_the_interface_does(service: Service, acme: Organization) -> None:
    acme.live.send({"recipients": addresses(2), "amount": 5})
    before = datetime.now(UTC).date()
    shown = service.json("statement", str(acme.id))
    first, last = (date.fromisoformat(shown[name]) for name in ("from", "to"))
    assert first.day == 1
    assert before <= last <= datetime.now(UTC).date()
    assert {name: shown[name] for name in ("from", "to", "days", "total")} == _statement(acme.live, first, last)
    assert (shown["organization_id"], shown["sandbox"]) == (acme.id, False)
    in_csv = service.command("statement", str(acme.id), "--csv", "--month", shown["from"][:7]).stdout
    lines = [{name: text if name == "date" else int(text) for name, text in line.items()} for line in _read(in_csv)]
    assert lines[: len(shown["days"])] == shown["days"]
    table = service.command("statement", str(acme.id), "--month", "2026-01").stdout
    assert "2026-01-31" in table
    assert "Acme, live, 2026-01: the balance was 0, and then 0 points." in table
    assert service.json("statement", str(acme.id), "--sandbox")["sandbox"]
    assert "must be one up to" in service.command("statement", str(acme.id), "--month", "2999-01", status=1).stderr
    assert "organization" in service.command("statement", "999999", status=1).stderr
