"""Erasing a user while lists of the console, approvals and exports are under way: no copy is left, and all goes on."""

import csv
import unicodedata
from io import StringIO

import pytest
from flask import Flask

from app import organizations, users
from app.erasing.erase import erase_user
from app.exports import sources
from app.exports.columns import CSV, TRANSACTIONS
from app.exports.export import begin
from app.ledger.registering import register_user
from app.pages.filters import Filters
from app.postgres.database import transaction
from app.scope import Scope
from app.values.addresses import parse
from tests.integration import books
from tests.integration.console_lists import checked, confirm, hidden
from tests.integration.needles import tables_with
from tests.integration.races import before_statement
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")

ADA, BO = "Ada.Lovelace@example.org", "bo@example.com"
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
    assert f"{name} 30 {BO} 20" in page
    assert "is approved." in words_of(bo.get(bo.post("/batches/1/approve", of="/batches/1/approval").location))
    books.drain_all(organization_id)
    assert [line[:2] for line in _lines(ann.get(f"{path}/outcome.csv").text)] == [["2", name], ["3", BO]]
    assert books.balance_of(organization_id) == 950
    # Sent once more, its line is one that is left out.
    copy = ann.post(f"{path}/again", of=f"{path}/outcome").location
    assert "1 line left out" in words_of(ann.get(copy))
    assert ann.get(again).status_code == 404
    assert tables_with([ADA.lower(), "lovelaceton"]) == []
    assert books.breaches() == []


def test_a_list_in_progress_is_gone_and_each_of_its_pages_says_so(ann: Visitor) -> None:
    user_id = _registered(ADA)
    path = checked(ann, f"email,amount\n{ADA},30\n{BO},20\n")
    page = ann.get(f"{path}/confirm")
    fields = hidden(page)
    erase_user(user_id)
    for name in ("", "/cost", "/confirm", "/outcome", "/bad-lines.csv"):
        assert ann.get(path + name).status_code == 404
    for name in ("", "/confirm"):
        answer = ann.client.post(path + name, data=fields)
        assert answer.status_code == 404, answer.text
    assert tables_with([ADA.lower()]) == []
    assert books.counts() == (0, 0)


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
        checked(ann, f"a,b\n{BO},{spelling}\n"),  # Which column is meant is a question.
    ]
    other = checked(ann, f"email,amount\n{BO},1\n")
    erase_user(user_id)
    assert [ann.get(path).status_code for path in (*unsent, other)] == [404, 404, 200]
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
