"""*Statement* in the console: a month that adds up, its neighbours, what it is made of, and its files."""

import csv
import re
from datetime import UTC, date, datetime, timedelta
from io import BytesIO, StringIO

import pytest
from flask import Flask
from python_calamine import CalamineWorkbook

from tests.integration import books
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")

ANN, BOB = "ann@example.com", "bob@example.com"


def _this_month(one: Visitor) -> str:
    """Return the name of the month that the page shows by itself."""
    found = re.search(r"<h1>Statement of ([0-9-]+)</h1>", one.get("/statement").text)
    assert found
    return found[1]


def test_a_viewer_sees_what_moved_the_balance_and_what_it_was_for(app: Flask) -> None:
    organization_id = books.make_organization(1_000, sandbox_balance=77)
    books.queue_batch(organization_id, [ANN, BOB], 100, label="Spring <sale>")
    batch_id = books.issue_now(organization_id, [ANN], 30)
    books.issue_now(organization_id, [ANN], 10_000)
    books.reverse_now(organization_id, batch_id=batch_id, amount=10)
    one = visitor(app, organization_id, "viewer")
    page = one.get("/statement")
    words = words_of(page)
    for tile in (
        "Refilled 1,000",
        "Debited 230 3 batches, 4 transactions, of which 1 unpaid",
        "balance 10 10 taken back",
    ):
        assert tile in words
    assert "Balance at the beginning 0" in words
    assert "Balance at the end 780" in words
    assert "Spring <sale> 200 without a label 30" in words
    assert re.search(r"Sender Points debited the API, with key [0-9]+ 230", words)
    assert len(re.findall("<rect", page.text)) == len(re.findall(r'<th scope="row" class="when">', page.text)) >= 1
    assert 'aria-current="page">Statement</a>' in page.text
    sandbox = words_of(one.get("/console/sandbox/statement"))
    assert "Balance at the end 77" in sandbox
    assert "Nothing was debited in this month." in sandbox


def test_the_months_before_and_after_are_a_step_away_and_others_are_none(app: Flask) -> None:
    organization_id = books.make_organization(1_000)
    books.execute("UPDATE organizations SET created_at = '2025-12-31 12:00Z'")
    one = visitor(app, organization_id, "viewer")
    page = one.get("/statement?month=2026-01")
    assert "Statement of 2026-01" in words_of(page)
    assert re.findall(r'statement\?month=([0-9-]+)" rel="(\w+)"', page.text) == [
        ("2025-12", "prev"),
        ("2026-02", "next"),
    ]
    assert "Month before: 2025-12 Month after: 2026-02" in words_of(page)
    assert 'rel="next"' not in one.get("/statement").text
    assert 'rel="prev"' not in one.get("/statement?month=2025-12").text
    assert one.get("/statement?month=0001-01").status_code == 200
    for wrong in ("2999-01", "2026-13", "x", ""):
        refused = one.get(f"/statement?month={wrong}")
        assert refused.status_code == 400
        assert "The month must be one up to" in words_of(refused)


def test_a_month_is_downloaded_as_csv_and_for_excel(app: Flask) -> None:
    organization_id = books.make_organization(1_000)
    books.issue_now(organization_id, [ANN, BOB], 100)
    one = visitor(app, organization_id, "viewer")
    month = _this_month(one)
    text = one.get(f"/statement.csv?month={month}")
    assert f"statement-{month}.csv" in text.headers["Content-Disposition"]
    lines = list(csv.DictReader(StringIO(text.text.removeprefix("\ufeff"))))
    assert lines[0]["date"] == f"{month}-01"
    assert sum(int(line["debited"]) for line in lines) == 200
    assert lines[-1]["closing_balance"] == "800"
    assert {date.fromisoformat(line["date"]).month for line in lines} == {int(month[-2:])}
    excel = one.get(f"/statement.xlsx?month={month}")
    [sheet] = CalamineWorkbook.from_filelike(BytesIO(excel.data)).sheet_names
    rows = CalamineWorkbook.from_filelike(BytesIO(excel.data)).get_sheet_by_name(sheet).to_python()
    assert rows[0] == list(lines[0])
    in_excel = [[str(cell).removesuffix(".0") for cell in row] for row in rows[1:]]
    assert in_excel == [list(line.values()) for line in lines][: len(in_excel)]
    assert "statement-2026-01-sandbox.csv" in str(one.get("/console/sandbox/statement.csv?month=2026-01").headers)
    assert datetime.now(UTC).date() - date.fromisoformat(lines[-1]["date"]) < timedelta(days=2)
