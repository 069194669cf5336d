"""Erasing a user while lists of the console, approvals and exports are under way: no copy is left, and all goes on."""

import csv
import unicodedata
from io import StringIO

import pytest
from flask import Flask

from app import organizations, users
from app.erasing import lists
from app.erasing.erase import erase_user
from app.exports import sources
from app.exports.columns import CSV, TRANSACTIONS
from app.exports.export import begin
from app.ledger.registering import register_user
from app.pages.filters import Filters
from app.postgres.database import transaction
from app.recipient_files import text
from app.recipient_files.writing import workbook_of
from app.scope import Scope
from app.values.addresses import parse
from tests.integration import books
from tests.integration.console_lists import checked, confirm, hidden
from tests.integration.needles import tables_with
from tests.integration.races import before_statement
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")

ADA, BO, CY = "Ada.Lovelace@example.org", "bo@example.com", "cy@example.com"
# An address with accents, as files have it: composed or not, its domain as people write it or as the network does.
ACCENTED = "andré@bücher.example"
SPELLINGS = [
    unicodedata.normalize("NFD", ACCENTED),
    "andré@xn--bcher-kva.example",
    *(pytest.param(spelling, marks=pytest.mark.long) for spelling in (ACCENTED, "ANDRÉ@BÜCHER.EXAMPLE")),
]


@pytest.fixture
def organization_id() -> int:
    return books.make_organization(1_000, sandbox_balance=500)


@pytest.fixture
def ann(app: Flask, organization_id: int) -> Visitor:
    return visitor(app, organization_id, "sender")


def _registered(email: str) -> int:
    with transaction() as connection:
        return register_user(connection, users.new_user(email, "Augustine", "Lovelaceton")).user.id


def _lines(file: str) -> list[list[str]]:
    return list(csv.reader(StringIO(file.removeprefix("\ufeff"))))[1:]


def test_a_list_that_awaits_an_approval_is_shown_and_issued_without_the_erased_user(
    app: Flask, ann: Visitor, organization_id: int
) -> None:
    books.run(organizations.change, organization_id, {"approval_above": 10})
    bo = visitor(app, organization_id, "approver")
    user_id = _registered(ADA)
    path = checked(ann, f"email,amount\n{ADA},30\n{BO},20\n")
    confirm(ann, path)
    again = checked(ann, f"email,amount\n{ADA},30\n")
    erase_user(user_id)
    name = f"erased-{user_id}"
    assert tables_with([ADA.lower(), "lovelaceton"]) == []
    page = words_of(bo.get("/batches/1/approval"))
    assert "Points to issue 20 to 1 recipient" in page
    assert f"{name} 0 – – {BO} 20" in page
    assert "is approved." in words_of(bo.get(bo.post("/batches/1/approve", of="/batches/1/approval").location))
    books.drain_all(organization_id)
    assert [line[:2] for line in _lines(ann.get(f"{path}/outcome.csv").text)] == [["2", name], ["3", BO]]
    assert books.balance_of(organization_id) == 980
    # Sent once more, its line is one that is left out.
    copy = ann.post(f"{path}/again", of=f"{path}/outcome").location
    assert "1 line left out" in words_of(ann.get(copy))
    assert ann.get(again).status_code == 404
    assert tables_with([ADA.lower(), "lovelaceton"]) == []
    assert books.breaches() == []


def test_a_list_in_progress_keeps_its_other_lines_and_is_sent_without_the_user(ann: Visitor) -> None:
    user_id, name = _registered(ADA), "Lovelaceton"
    workbook = workbook_of(
        ["email", "amount", "name", "note"], [[ADA, 30, name, ""], [BO, 20, "Bo", ""], [CY, "none", "", ADA]]
    )
    rows = f'email,amount,name\n{ADA},30,{name}\n{BO},20,Bo\n{CY},none,"\n{ADA.upper()}"\n'
    for content, left_out in ((rows, 3), (rows.encode("utf-16"), 3), (workbook, 2)):
        path = checked(ann, content)
        page = ann.get(f"{path}/confirm")
        erase_user(user_id)
        assert tables_with([ADA.lower(), "lovelaceton"]) == []
        # What the member has seen is another list now.
        assert "Nothing was issued" in ann.client.post(f"{path}/confirm", data=hidden(page)).text
        words = words_of(ann.get(path))
        assert f"{left_out} lines left out" in words
        assert f"2 erased-{user_id} It names a user who was erased." in words
        # Checked again, it is the list without the line.
        assert ann.post(path, of=path, label="Spring").status_code == 303
        assert "1 line left out" in words_of(ann.get(path))
        confirm(ann, path, again="yes")
        books.drain_all(ann.organization_id)
        outcome = _lines(ann.get(f"{path}/outcome.csv").text)
        assert ["3", BO, "20"] in [[*line[:2], line[4]] for line in outcome]
        user_id = _registered(ADA)
    assert books.balance_of(ann.organization_id) == 940
    assert books.breaches() == []


def test_of_a_list_that_has_nobody_else_nothing_is_left_and_each_of_its_pages_says_so(ann: Visitor) -> None:
    user_id = _registered(ADA)
    path = checked(ann, f"email,amount\n{ADA},30\n")
    fields = hidden(ann.get(f"{path}/confirm"))
    erase_user(user_id)
    for name in ("", "/cost", "/confirm", "/outcome", "/bad-lines.csv"):
        assert ann.get(path + name).status_code == 404
    for name in ("", "/confirm"):
        answer = ann.client.post(path + name, data=fields)
        assert answer.status_code == 404, answer.text
    assert tables_with([ADA.lower()]) == []
    assert books.counts() == (0, 0)


def test_an_erasure_reads_no_list_of_others_and_no_workbook(ann: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    others = workbook_of(["email", "amount"], [[BO, 5]])
    path, lee = checked(ann, others), _registered("lee@example.com")
    checked(ann, "email,amount\nashlee@example.com,5\n")
    for what in ("text_of", "upload_parts"):
        monkeypatch.setattr(lists, what, None)
    monkeypatch.setattr(text, "_sheets", None)
    erase_user(lee)
    assert ann.get(path).status_code == 200


def test_the_name_of_a_file_and_of_a_sheet_is_erased_and_that_of_another_stays(ann: Visitor) -> None:
    user_id = _registered("lee@example.com")
    for file in (
        "lee@example.com.csv",
        "list-lee@example.com_2026.xlsx",
        "of LEE@example.com",
        "ashlee@example.com.csv",
    ):
        checked(ann, f"email,amount\n{BO},1\n", file=file)
    erase_user(user_id)
    name = f"erased-{user_id}"
    assert books.values("SELECT name FROM uploads ORDER BY id") == [
        *(f"{name}.csv", f"list-{name}_2026.xlsx", f"of {name}", "ashlee@example.com.csv")
    ]


def test_a_list_that_is_checked_again_meanwhile_is_not_kept(ann: Visitor) -> None:
    user_id = _registered(ADA)
    path = checked(ann, f"email,amount\n{ADA},30\n")
    with before_statement("FOR UPDATE", lambda: erase_user(user_id)):
        answer = ann.post(path, of=path, label="Spring")
    assert answer.status_code in (200, 303, 404)
    assert ann.get(path).status_code == 404
    assert tables_with([ADA.lower()]) == []


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_address_is_erased_from_lists_however_they_spell_it(ann: Visitor, spelling: str) -> None:
    assert parse(spelling).key == ACCENTED
    user_id = _registered(spelling)
    sent = checked(ann, f"email,amount,note\n{spelling},1,a\n{BO},2,b\n{spelling},3,c\n")
    confirm(ann, sent)
    books.drain_all(ann.organization_id)
    unsent = [
        checked(ann, f"email,amount\n{spelling},1\n"),
        checked(ann, f"a,b\n{BO},{spelling}\n{CY},dan@example.com\n"),  # Which column is meant is a question.
    ]
    other = checked(ann, f"email,amount\n{BO},1\n")
    books.execute("ANALYZE uploads")
    erase_user(user_id)
    assert [ann.get(path).status_code for path in (*unsent, other)] == [404, 200, 200]
    assert tables_with([ACCENTED, spelling.lower()]) == []
    outcome = _lines(ann.get(f"{sent}/outcome.csv").text)
    assert [line[1] for line in outcome] == [f"erased-{user_id}", BO, f"erased-{user_id}"]
    assert books.breaches() == []


def test_a_list_keeps_its_other_lines_and_an_address_with_the_erased_one_in_it(ann: Visitor) -> None:
    lee, ashlee = "lee@example.com", "ashlee@example.com"
    user_id = _registered(lee)
    sent = checked(ann, f"email,amount\n{BO},1\n{ashlee},none\n{lee},none\n")
    confirm(ann, sent)
    books.drain_all(ann.organization_id)
    unsent = checked(ann, f"email,amount\n{ashlee},1\n")
    erase_user(user_id)
    assert ann.get(unsent).status_code == 200
    outcome = ann.get(f"{sent}/outcome.csv").text
    assert len(_lines(outcome)) == 3
    assert outcome.count(lee) == outcome.count(ashlee) == 1


@pytest.mark.parametrize("of_user", [False, True], ids=["all", "of the user"])
def test_an_export_that_was_begun_goes_on_without_the_address(
    monkeypatch: pytest.MonkeyPatch, *, of_user: bool
) -> None:
    monkeypatch.setattr(sources, "PIECE_ROWS", 2)
    organization_id, user_id = books.make_organization(1_000), _registered(ADA)
    for _ in range(3):
        books.issue_now(organization_id, [ADA, BO], 1)
    wanted = Filters(organization_id=organization_id, sandbox=False, email_key=ADA.lower() if of_user else None)
    made = begin(TRANSACTIONS, CSV, wanted)
    content = made.content()
    before = next(content) + next(content)
    assert ADA in before.decode()
    erase_user(user_id)
    after = b"".join(content).decode()
    assert ADA.lower() not in after.lower()
    *rows, last = _lines(before.decode() + after)
    assert last[0] == f"total of {len(rows)} rows"
    assert len(rows) == made.rows == (2 if of_user else 6)
    with transaction() as connection:
        assert organizations.get(connection, Scope(organization_id, sandbox=False)).balance == 994
