"""The overview: points by day and month from the statement, who sent most, refills, and where its tiles lead."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import text

from app.console.chart import HEIGHT, bars
from app.ledger.refill import refill, reset_sandbox
from app.postgres.database import transaction
from app.statement.read import statement_of
from tests.integration import books
from tests.integration.test_console_send import checked, confirm
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")


def _let_a_day_pass() -> None:
    """Put everything that moved a balance one day into the past."""
    past = "interval '1 day'"
    books.execute(
        *books.WITHOUT_GUARDS,
        f"UPDATE batches SET issued_at = issued_at - {past}, created_at = created_at - {past}",
        f"UPDATE refills SET created_at = created_at - {past}",
        f"UPDATE reversals SET done_at = done_at - {past}, created_at = created_at - {past}",
        *books.WITH_GUARDS,
    )


def _issued(organization_id: int, *, sandbox: bool = False, days: int = 6) -> list[int]:
    today = datetime.now(UTC).date()
    with transaction() as connection:
        lines = statement_of(
            connection, organization_id, sandbox=sandbox, first=today - timedelta(days=days - 1), last=today
        ).days
    assert list(lines) == [today - timedelta(days=number) for number in reversed(range(days))]
    return [line.debited for line in lines.values()]


@pytest.mark.parametrize("sandbox", [False, True])
def test_the_points_of_each_day_are_those_debited_whatever_else_moved_the_balance(*, sandbox: bool) -> None:
    organization_id = books.make_organization(500, sandbox_balance=500)
    other_id = books.make_organization(500, sandbox_balance=500)
    two = ["a@example.com", "b@example.com"]
    first = books.issue_now(organization_id, two, 50, sandbox=sandbox)
    books.issue_now(other_id, two, 7, sandbox=sandbox)
    books.issue_now(organization_id, two, 1, sandbox=not sandbox)
    _let_a_day_pass()
    _let_a_day_pass()
    books.issue_now(organization_id, two, [30, 5], sandbox=sandbox)
    books.reverse_now(organization_id, batch_id=first, amount=20, sandbox=sandbox)
    with transaction() as connection:
        refill(connection, organization_id, 300, sandbox=sandbox)
    books.issue_now(organization_id, two, 10, sandbox=sandbox)
    _let_a_day_pass()
    with transaction() as connection:
        reset_sandbox(connection, organization_id)
    books.reverse_now(organization_id, batch_id=first, sandbox=sandbox)
    _let_a_day_pass()
    books.issue_now(organization_id, two, 3, sandbox=sandbox)
    assert _issued(organization_id, sandbox=sandbox) == [0, 100, 0, 55, 0, 6]
    assert _issued(other_id, sandbox=not sandbox) == [0] * 6
    with transaction() as connection:
        debited = connection.execute(
            text("SELECT sum(debited_amount) FROM batches WHERE organization_id = :id AND sandbox = :sandbox"),
            {"id": organization_id, "sandbox": sandbox},
        ).scalar()
    assert debited == 161


def test_a_bar_stands_for_each_day_and_the_highest_fills_the_picture() -> None:
    days = [date(2026, 1, 30) + timedelta(days=number) for number in range(4)]
    drawn = bars(dict(zip(days, [0, 50, 100, 1], strict=True)))
    assert [(bar.day, bar.points) for bar in drawn] == list(zip(days, [0, 50, 100, 1], strict=True))
    assert [bar.height for bar in drawn] == [0, HEIGHT / 2, HEIGHT, 1.5]
    assert [bar.y + bar.height for bar in drawn] == [HEIGHT] * 4
    assert bars(dict.fromkeys(days, 0))[0].height == 0


def test_the_overview_answers_how_much_by_whom_and_how_long_it_lasts(app: Flask, ann: Visitor) -> None:
    confirm(ann, checked(ann, "email\na@example.com\nb@example.com\n", amount="100"))
    books.drain_all(ann.organization_id)
    books.issue_now(ann.organization_id, ["c@example.com"], 300)
    books.issue_now(ann.organization_id, ["c@example.com"], 77, sandbox=True)
    page = ann.get()
    words = words_of(page)
    today = datetime.now(UTC).date()
    assert "Issued this month 500 last month 0, by the same day 0" in words
    assert "Balance 500 lasts 30 days at the pace of the last 30 days" in words
    assert f"{today} 500 {today - timedelta(days=1)} 0" in words
    assert len(re.findall("<rect", page.text)) == 30
    assert "500 points, 500 today, at most 500 on a day" in words
    assert "Programs, by the API 300 Ann Sender 200" in words
    assert re.search(r"Refills When Points Balance after it \S+ \S+ UTC 1,000 1,000", words)
    for path in ("send", "held", "batches?status=scheduled", f"batches?created_from={today.replace(day=1)}"):
        [answer] = {ann.get(link).status_code for link in re.findall(rf'href="([^"]+/{re.escape(path)})"', page.text)}
        assert answer == 200
    sandbox = words_of(ann.get("/console/sandbox"))
    assert "Issued this month 77" in sandbox
    assert "Programs, by the API 77" in sandbox
    assert "Ann Sender 200" not in sandbox
    viewer = visitor(app, ann.organization_id, "viewer")
    assert ">Send points<" not in viewer.get().text


def test_last_month_is_told_beside_this_one_up_to_the_same_day(ann: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    by_day = {date(2026, 2, 1): 1, date(2026, 2, 28): 10, date(2026, 3, 1): 100, date(2026, 3, 31): 1_000}
    from app.console.views import overview  # noqa: PLC0415  # It registers pages, as `create_app` does.

    assert overview._months(by_day, date(2026, 3, 31)) == (date(2026, 3, 1), 1_100, 11, 11)
    assert overview._months(by_day, date(2026, 3, 27)) == (date(2026, 3, 1), 100, 1, 11)
