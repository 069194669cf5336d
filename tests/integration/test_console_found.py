"""Found as people look: by a part of an address or label, by sender, amount and day, with sum, count and file."""

import csv
import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from flask import Flask

from app.pages import far
from tests.integration import books
from tests.integration.visitors import Visitor, make_member, visitor, words_of

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB, UMLAUT = "ann@example.com", "Bob.Lee@Example.org", "zoë@example.com"


@pytest.fixture
def one(app: Flask) -> Visitor:
    """Sign in to an organization with four batches: one is a member's, with two amounts, and one is partly unpaid."""
    books.make_users(ANN)
    organization_id = books.make_organization(1_000)
    found = visitor(app, organization_id, "viewer")
    books.queue_batch(organization_id, [ANN, BOB], 10, label="Spring 100% off")
    by_member = books.queue_batch(organization_id, [BOB, UMLAUT], [20, 30], references=["r-1", "r-2"])
    books.rewrite(
        f"UPDATE batches SET api_key_id = NULL, member_id = {found.member_id}, labels = '{{Autumn,NULL}}'"
        f" WHERE id = {by_member}",
    )
    books.drain_all(organization_id)
    books.issue_now(organization_id, ["p_q@example.com", "pxq@example.com"], 1)
    books.queue_batch(organization_id, [ANN, "last@example.com"], 900, label="spring")
    books.drain_all(organization_id)
    return found


def _rows(one: Visitor, path: str) -> list[tuple[str, str]]:
    """Return the addresses and amounts that a search lists, from all its pages."""
    rows: list[tuple[str, str]] = []
    while path:
        page = one.get(path).text
        cell = r'<th scope="row" class="address"><a [^>]+>([^<]+)<.*?"Points" class="number">([^<]+)<'
        rows += re.findall(cell, page, re.DOTALL)
        path = next(iter(re.findall(r'href="([^"]+)">Older', page)), "").replace("&amp;", "&")
    return rows


def _file(one: Visitor, path: str) -> list[dict[str, Any]]:
    """Return the rows of a file, newest first as a list has them, and see that it is whole."""
    answer = one.get(path)
    assert answer.status_code == 200
    *rows, last = csv.DictReader(StringIO(answer.data.decode("utf-8-sig")))
    assert next(iter(last.values())) == f"total of {len(rows)} rows"
    return rows[::-1]


_FOUND = [
    ("email=example.ORG", [BOB, BOB], "2 transactions, 30 points"),
    ("email=Zo%C3%8B", [UMLAUT], "1 transaction, 30 points"),
    ("email=p_q", ["p_q@example.com"], "1 transaction, 1 point debited"),
    ("email=%25", [], "0 transactions, 0 points"),
    (f"email={BOB}", [BOB, BOB], "2 transactions, 30 points"),
    (f"email={BOB}&points=20", [BOB], "1 transaction, 20 points"),
    ("label=SPRING", ["last@example.com", ANN, BOB, ANN], "4 transactions, 920 points"),
    ("label=100%25", [BOB, ANN], "2 transactions, 20 points"),
    ("label=autumn", [BOB], "1 transaction, 20 points"),
    ("points=1+0", [BOB, ANN], "2 transactions, 20 points"),
    ("points=30", [UMLAUT], "1 transaction, 30 points"),
    ("sender=1", [UMLAUT, BOB], "2 transactions, 50 points"),
    ("sender=0&points=1", ["pxq@example.com", "p_q@example.com"], "2 transactions, 2 points"),
    ("reference=r-2", [UMLAUT], "1 transaction, 30 points"),
    ("state=unpaid", ["last@example.com"], "1 transaction, 0 points"),
    ("state=credited", [ANN, ANN], "2 transactions, 910 points"),
    ("state=held&email=e.org", [BOB, BOB], "2 transactions, 30 points"),
    ("created_from=2020-01-01&email=zo", [UMLAUT], "1 transaction, 30 points"),
    ("created_to=2020-01-01", [], "0 transactions, 0 points"),
]


@pytest.mark.parametrize("far_max", [1, 1_000_000, pytest.param(25, marks=pytest.mark.long)])
def test_transactions_are_found_with_their_count_and_sum_and_as_a_file(
    one: Visitor, monkeypatch: pytest.MonkeyPatch, far_max: int
) -> None:
    monkeypatch.setattr(far, "FAR_MAX", far_max)
    for query, emails, told in _FOUND:
        assert [email for email, _ in _rows(one, f"/transactions?{query}")] == emails, query
        file = _file(one, f"/transactions.csv?{query}")
        assert [row["email"] for row in file] == emails, query
        if far_max == 1_000_000 and emails:
            page = one.get(f"/transactions?{query}")
            assert told in words_of(page)
            assert f"/transactions.csv?{query.partition('=')[0]}=" in page.text
            assert f", {sum(int(row['points']) for row in file)} point" in told


def test_batches_are_found_by_part_of_a_label_sender_points_and_day(one: Visitor) -> None:
    def ids(query: str) -> list[str]:
        listed = re.findall(r"/batches/(\d+)", one.get(f"/batches?{query}").text)
        assert [row["batch_id"] for row in _file(one, f"/batches.csv?{query}")] == listed
        return listed

    assert ids("label=SPRING") == ["4", "1"]
    assert ids("label=autumn") == ["2"], "an item has it"
    assert ids(f"label=autumn&email={BOB}") == ["2"]
    assert ids("label=autumn&email=zo%C3%AB@example.com") == [], "another item has it"
    assert ids("sender=1") == ["2"]
    assert ids("sender=0&label=100%25") == ["1"]
    assert ids("points=50") == ["2"]
    assert ids("created_from=2020-01-01&points=900") == ["4"]
    assert ids("created_to=2020-01-01") == []
    assert "2 batches, 920 points issued" in words_of(one.get("/batches?label=spring"))
    assert _file(one, "/batches.csv?sender=1")[0]["sender"] == "Ann Viewer"
    assert "1 batch, 50 points issued" in words_of(one.get("/batches?label=autumn"))


def test_a_file_names_its_mode_in_its_name_and_in_a_column(one: Visitor) -> None:
    for kind in ("transactions", "batches"):
        saved = one.get(f"/{kind}.csv")
        assert f"filename={kind}-live.csv" in saved.headers["Content-Disposition"]
        assert {row["mode"] for row in _file(one, f"/{kind}.csv")} == {"live"}
    sandbox = one.get("/console/sandbox/reversals.csv")
    assert "filename=reversals-sandbox.csv" in sandbox.headers["Content-Disposition"]
    assert "mode" in sandbox.text.splitlines()[0]


def test_who_is_in_a_batch_that_is_not_issued_yet_is_found(one: Visitor) -> None:
    later = datetime.now(UTC) + timedelta(days=2)
    books.queue_batch(one.organization_id, [BOB, "new@example.com"], [3, 4], references=["s-1", "s-2"], send_at=later)
    queued = books.queue_batch(one.organization_id, ["new@example.com"], 5, label="Winter")
    waiting = books.queue_batch(one.organization_id, ["neu@example.com"], 6)
    books.rewrite(f"UPDATE batches SET status = 'awaiting_approval' WHERE id = {waiting}")
    scheduled = r"new@example.com scheduled for \S+ \S+ UTC 4 – s-2 5"
    for query, words in (
        ("email=new@example.com", rf"new@example.com queued 5 Winter – {queued} {scheduled}"),
        ("email=NE", rf"neu@example.com awaiting approval 6 – – {waiting} new@example.com queued 5 .* {scheduled}"),
        ("email=new&label=winter", rf"Not issued yet .* new@example.com queued 5 Winter – {queued} (?!new)"),
    ):
        for page in ("transactions", "recipient") if "label" not in query else ("transactions",):
            assert re.search(words, words_of(one.get(f"/{page}?{query}"))), query
    assert f"/batches/{queued}" in one.get("/batches?email=new@example.com").text
    for query in (
        "batches?email=new@example.com&status=issued",
        "transactions?email=new&state=held",
        "recipient?email=nobody",
    ):
        assert "Not issued yet" not in one.get(f"/{query}").text, query


def test_one_recipient_has_a_page_of_all_that_the_address_was_sent(one: Visitor, app: Flask) -> None:
    found = one.get("/transactions?email=bob").text
    assert "/console/live/recipient?email=Bob.Lee@Example.org" in found
    page = words_of(one.get("/recipient?email=Bob.Lee@Example.org"))
    assert "2 transactions, 30 points debited" in page
    assert re.search(r"Bob.Lee@Example.org held 20 Autumn r-1 \S+ \S+ UTC 2 Bob.Lee@Example.org held 10 ", page)
    assert [row["email"] for row in _file(one, "/recipient.csv?email=Bob.Lee@Example.org")] == [BOB, BOB]
    sender = visitor(app, one.organization_id, "sender")
    assert "/console/live/batches/2/take-back?recipient=1" in sender.get(f"/recipient?email={BOB}").text


def test_what_went_back_is_told_beside_the_sum_and_reversals_are_saved_too(one: Visitor) -> None:
    reversal_id = books.reverse_now(one.organization_id, batch_id=1, amount=4)
    found = words_of(one.get("/transactions?label=spring"))
    assert "4 transactions, 920 points debited , of which 8 went back." in found
    assert "/console/live/reversals.csv?status=done" in one.get("/reversals?status=done").text
    [row] = _file(one, "/reversals.csv?status=done")
    assert (row["reversal_id"], row["points"], row["reason"]) == (str(reversal_id), "8", "a mistake")
    assert _file(one, "/reversals.csv?status=queued") == []


def test_a_file_that_broke_off_goes_on_behind_its_last_row(one: Visitor) -> None:
    file = one.get("/transactions.csv?sender=0")
    assert file.headers["Content-Disposition"] == "attachment; filename=transactions-live.csv"
    whole = file.data.splitlines()
    last = whole[3].split(b",")[0].decode()
    rest = one.get(f"/transactions.csv?sender=0&after={last}").data.splitlines()
    assert rest[:-1] == whole[4:-1]
    assert rest[-1].startswith(f"total of {len(rest) - 1} rows after {last},".encode())
    assert one.get("/transactions.csv?after=7").status_code == 404
    assert one.get("/transactions.csv?after=x").status_code == 400
    assert "does not know" in words_of(one.get("/transactions?after=7")), "only a file goes on behind a row"


def test_held_points_are_found_and_saved_too_and_a_file_of_a_wrong_search_is_refused(one: Visitor) -> None:
    assert [email for email, _ in _rows(one, "/held?email=example.org")] == [BOB, BOB]
    assert "2 transactions, 30 points debited" in words_of(one.get("/held?email=example.org"))
    assert {row["state"] for row in _file(one, "/held.csv")} == {"held"}
    assert one.get("/transactions.csv?points=ten").status_code == 400


def test_nothing_is_found_of_another_organization_or_mode(app: Flask, one: Visitor) -> None:
    other_id = books.make_organization(100)
    make_member(other_id, "other@example.com", "viewer")
    stranger = visitor(app, other_id, "admin")
    for query in ("email=example", "sender=1", "label=spring", "state=credited"):
        assert _rows(stranger, f"/transactions?{query}") == []
        assert _rows(one, f"/console/sandbox/transactions?{query}") == []
        assert _file(stranger, f"/transactions.csv?{query}") == []
    assert _file(stranger, "/batches.csv?label=spring") == []
