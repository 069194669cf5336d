"""Sending from the console: a list is checked, costed, confirmed and issued once, and its outcome is all told."""

import re
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import psutil
import pytest
from flask import Flask
from sqlalchemy import text
from werkzeug.test import TestResponse

from app import organizations
from app.batches.schedule import release_due
from app.console.slow_work import list_checks
from app.postgres import connections
from app.postgres.connections import engine
from app.postgres.database import transaction
from app.scope import Author
from app.settings import settings
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.console_lists import checked, confirm, hidden, rows_of, sent, upload, value
from tests.integration.races import started, until_waiting
from tests.integration.visitors import Visitor, visitor, words_of
from tests.pace import in_time
from tests.unit.workbooks import misleading_xlsx

pytestmark = pytest.mark.usefixtures("database", "broker")

_Clicks = Callable[[str, dict[str, str], int], list[TestResponse]]
_ZONE = "Europe/Berlin"
_EIGHT = "email\n" + "".join(f"p{i}@example.com\n" for i in range(8))
_SPRING = {"amount": "5", "label": "Spring"}


@pytest.fixture
def clicks(app: Flask, ann: Visitor, many_connections: None) -> _Clicks:
    """Send one form of Ann's many times at once."""

    def clicks(path: str, form: dict[str, str], times: int) -> list[TestResponse]:
        cookie = ann.client.get_cookie("points_console", path="/console")
        assert cookie is not None

        def click(_: int) -> TestResponse:
            client = app.test_client()
            client.set_cookie("points_console", cookie.value, path="/console")
            return client.post(path, data=form)

        with ThreadPoolExecutor(times) as pool:
            return list(pool.map(click, range(times)))

    return clicks


def _settled(ann: Visitor, path: str, **fields: str) -> TestResponse:
    """Choose when, and whether only to all; return the page of the last button."""
    answer = ann.post(f"{path}/cost", of=f"{path}/cost", **fields)
    assert (answer.status_code, answer.location) == (303, f"{path}/confirm"), words_of(answer)
    return ann.get(answer.location)


def _later(*, days: float = 2, zone: str = "UTC") -> tuple[dict[str, str], str]:
    """Return the fields of a later time, and how the pages write it."""
    local = (datetime.now(UTC) + timedelta(days=days)).astimezone(ZoneInfo(zone))
    hours = (local.utcoffset() or timedelta()).seconds // 3_600
    fields = {"when": "later", "day": f"{local:%Y-%m-%d}", "clock": f"{local:%H:%M}"}
    return fields, f"{local:%Y-%m-%d %H:%M} UTC{f'+{hours}' if hours else ''}"


def _let_scheduled_be_issued(ann: Visitor) -> list[int]:
    books.execute("UPDATE batches SET send_at = now() WHERE status = 'scheduled'")
    books.run(release_due, at_most=100)
    return books.drain_all(ann.organization_id)


def test_many_clicks_at_once_issue_once_and_make_one_list(ann: Visitor, clicks: _Clicks) -> None:
    path = checked(ann, "email\n" + "".join(f"p{i}@example.com\n" for i in range(25)), amount="4")
    answers = clicks(f"{path}/confirm", hidden(ann.get(f"{path}/confirm")), 16)
    assert {(answer.status_code, answer.location) for answer in answers} == {(303, f"{path}/outcome")}
    assert len(books.drain_all(ann.organization_id)) == 1
    assert books.balance_of(ann.organization_id) == 900
    form = hidden(ann.get(f"{path}/outcome"))
    copied = {answer.location for answer in clicks(f"{path}/again", form, list_checks.waiting_max)}
    assert copied == {f"/console/live/send/{form['form_id']}"}
    assert (value("SELECT count(*) FROM uploads"), value("SELECT count(*) FROM batches")) == (2, 1)


def test_who_clicks_while_the_list_is_held_is_told_and_issues_nothing(
    monkeypatch: pytest.MonkeyPatch, ann: Visitor
) -> None:
    path = checked(ann, "email\na@example.com\n", amount="4")
    form = hidden(ann.get(f"{path}/confirm"))
    monkeypatch.setattr(connections, "LOCK_TIMEOUT_MS", 100)
    forget_everything()
    with engine().connect() as other, other.begin():
        other.execute(text("SELECT FROM uploads FOR UPDATE"))
        answer = ann.client.post(f"{path}/confirm", data=form)
    assert answer.status_code == 409
    assert "Another window is sending this list" in answer.text
    assert books.drain_all(ann.organization_id) == []


def test_a_list_longer_than_a_batch_is_accepted_whole_in_order_and_who_is_shown_as_paid_is_paid(
    monkeypatch: pytest.MonkeyPatch, ann: Visitor
) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    amounts = {"a": 600, "b": 600, "c": 300, "d": 200, "e": 100}
    lines = [f"{name}@example.com,{amount}" for name, amount in amounts.items()]
    path = checked(ann, "\n".join(["email,amount", "bad line", *lines]))
    assert "it is sent as 3 batches" in words_of(ann.get(f"{path}/cost"))
    page = words_of(ann.get(f"{path}/confirm"))
    assert "Issue 1,000 points to 3 of 5 recipients" in page
    assert confirm(ann, path).status_code == 303
    assert "0 of 3 batches" in words_of(ann.get(f"{path}/outcome"))
    books.drain_all(ann.organization_id)
    outcome = rows_of(ann.get(f"{path}/outcome.csv"))
    assert [row["email"] for row in outcome] == ["bad line", *(line.partition(",")[0] for line in lines)]
    assert [row["state"] for row in outcome] == ["left out", "held", "unpaid", "held", "unpaid", "held"]
    assert [int(row["line"]) for row in outcome] == list(range(2, 8))
    assert len({row["batch_id"] for row in outcome}) == 4


def test_nothing_of_a_long_list_is_accepted_if_one_part_is_not(monkeypatch: pytest.MonkeyPatch, ann: Visitor) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    path = checked(ann, "email,amount\na@example.com,1\nb@example.com,1\nc@example.com,900\n")
    form = hidden(ann.get(f"{path}/confirm"))
    monkeypatch.setenv("POINTS_AMOUNT_MAX", "100")
    forget_everything()
    refused = ann.client.post(f"{path}/confirm", data=form)
    assert refused.status_code == 409
    assert "Nothing was issued." in refused.text
    assert books.drain_all(ann.organization_id) == []


_TWO_COLUMNS = "private;work;amount\na@example.com;b@example.com;300\nc@example.com;d@example.com;900\n"
_SETTLED = {"column": "0", "amount": "", "label": "Spring"}


def _check_again(**changed: str) -> Callable[[Visitor, str], object]:
    return lambda ann, path: ann.post(path, of=path, **_SETTLED | changed)


def _settle(**fields: str) -> Callable[[Visitor, str], object]:
    return lambda ann, path: _settled(ann, path, **fields)


def _in(zone: str) -> Callable[[Visitor, str], object]:
    return lambda ann, _: ann.post("/account/zone", of="/account", zone=zone)


def _send_the_same(ann: Visitor, _: str) -> object:
    return books.queue_batch(ann.organization_id, ["A@example.com"], 300, label="Spring")


# What another window, person or program does while the page of the last button is open; the first line as it is then
# issued; and its status, None where the new page has no button.
_MEANWHILE: dict[str, tuple[Callable[[Visitor, str], object], tuple[str, str, str], str | None]] = {
    "column": (_check_again(column="1"), ("b@example.com", "300", "Spring"), "queued"),
    "label": (_check_again(label="Autumn"), ("a@example.com", "300", "Autumn"), "queued"),
    "no label": (_check_again(label=""), ("a@example.com", "300", ""), "queued"),
    "amount": (_check_again(amount="2"), ("a@example.com", "2", "Spring"), "queued"),
    "column of labels": (_check_again(label_column="1"), ("a@example.com", "300", "b@example.com"), "queued"),
    "later": (_settle(**_later()[0]), ("a@example.com", "300", "Spring"), "scheduled"),
    "all or nobody": (_settle(when="now", atomic="y"), ("a@example.com", "300", "Spring"), None),
    "refilled": (
        lambda ann, _: books.refill_now(ann.organization_id, 2_000),
        ("a@example.com", "300", "Spring"),
        "queued",
    ),
    "spent": (lambda ann, _: books.issue_now(ann.organization_id, ["x@example.com"], 800), ("", "", ""), None),
    "suspended": (lambda ann, _: books.set_flags(ann.organization_id, is_suspended=True), ("", "", ""), None),
    "an approval": (
        lambda *_: books.execute("UPDATE organizations SET approval_above = 100"),
        ("a@example.com", "300", "Spring"),
        "awaiting_approval",
    ),
    "sent the same": (_send_the_same, ("a@example.com", "300", "Spring"), "queued"),
}


# What the page then says has changed; of all others it is the list.
_CHANGED = {
    "later": "the time has",
    "all or nobody": "“all or nobody” has",
    **dict.fromkeys(("refilled", "spent"), "what the balance pays of it has"),
    "an approval": "the limit above which an approval is needed has",
    "sent the same": "what its recipients were sent before has",
}


@pytest.mark.parametrize("what", _MEANWHILE)
def test_what_has_changed_since_the_last_page_is_shown_before_anything_is_issued(ann: Visitor, what: str) -> None:
    change, first, status = _MEANWHILE[what]
    path = checked(ann, _TWO_COLUMNS)
    assert _check_again()(ann, path)
    form = hidden(ann.get(f"{path}/confirm"))
    change(ann, path)
    before = value("SELECT count(*) FROM batches")
    refused = ann.client.post(f"{path}/confirm", data=form)
    assert refused.status_code == 409
    says = (
        "organization is suspended"
        if what == "suspended"
        else f"Since you looked, {_CHANGED.get(what, 'the list has')}"
    )
    assert says in words_of(refused)
    assert (value("SELECT count(*) FROM batches"), value("SELECT max(sent_at) FROM uploads")) == (before, None)
    again = ann.client.post(f"{path}/confirm", data=hidden(refused) | {"again": "yes"})
    if status is None:
        assert 'class="issue"' not in refused.text
        assert again.status_code == 409
        return
    assert first[0] in words_of(refused)
    assert again.status_code == 303, words_of(again)
    assert value("SELECT status FROM batches ORDER BY id DESC LIMIT 1") == status
    _let_scheduled_be_issued(ann)
    row = rows_of(ann.get(f"{path}/outcome.csv"))[0]
    assert (row["email"], row["amount"], row["label"]) == first


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_settle(when="now"), "the time has"),
        (_settle(**_later(days=3)[0]), "the time has"),
        (_in("Asia/Tokyo"), "your time zone has"),
    ],
    ids=["now", "time", "zone"],
)
def test_a_button_for_one_time_schedules_nothing_for_another(
    ann: Visitor, change: Callable[[Visitor, str], object], says: str
) -> None:
    path = checked(ann, _EIGHT, amount="10")
    form = hidden(_settled(ann, path, **_later()[0]))
    change(ann, path)
    refused = ann.client.post(f"{path}/confirm", data=form)
    assert (refused.status_code, value("SELECT count(*) FROM batches")) == (409, 0)
    assert f"Since you looked, {says} changed" in words_of(refused)
    assert ann.client.post(f"{path}/confirm", data=hidden(refused)).status_code == 303


def test_what_has_changed_since_the_page_of_the_button_is_said(app: Flask, ann: Visitor) -> None:
    path = checked(ann, _EIGHT, amount="10")
    for change, says in (
        ("held_days = 30", "how long points are held has changed"),
        ("approval_above = 1000", "the limit above which an approval is needed has changed"),
        ("balance = 15, held_days = 31", "what the balance pays of it and how long points are held have changed"),
    ):
        form = hidden(ann.get(f"{path}/confirm"))
        books.rewrite(f"UPDATE organizations SET {change}")
        refused = ann.client.post(f"{path}/confirm", data=form)
        assert refused.status_code == 409
        assert f"Since you looked, {says}" in words_of(refused)
    form, admin = hidden(ann.get(f"{path}/confirm")), visitor(app, ann.organization_id, "admin")
    with transaction(by=Author(member_id=admin.member_id)) as connection:
        organizations.change(connection, ann.organization_id, {"held_days": 32})
    told = words_of(ann.client.post(f"{path}/confirm", data=form))
    assert re.search(
        r"are held has changed \([^)]*Ann Admin: Changed the organization: days that .* from 31 to 32",
        told,
    )
    for page in ("cost", "confirm"):
        assert "account are held for 32 days, then they go back" in words_of(ann.get(f"{path}/{page}"))


def test_the_button_of_one_list_or_mode_issues_no_other(ann: Visitor) -> None:
    live, other, sandbox = (checked(ann, _EIGHT, amount="1", mode=mode) for mode in ("live", "live", "sandbox"))
    form = hidden(ann.get(f"{live}/confirm"))
    for path in (other, sandbox):
        assert ann.client.post(f"{path}/confirm", data=form).status_code == 409
    books.execute("UPDATE uploads SET sandbox = true")
    assert ann.client.post(f"{live.replace('/live/', '/sandbox/')}/confirm", data=form).status_code == 409
    assert value("SELECT count(*) FROM batches") == 0


def test_a_list_that_another_window_has_left_with_a_question_is_not_issued(ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\n", amount="3")
    form = hidden(ann.get(f"{path}/confirm"))
    assert ann.post(path, of=path, amount="").status_code == 303
    asked = ann.client.post(f"{path}/confirm", data=form)
    assert (asked.status_code, asked.location) == (303, path)
    assert "Nothing was issued. Since you looked, the list has changed" in ann.get(path).text
    assert value("SELECT count(*) FROM batches") == 0


def test_a_refill_that_lands_while_the_button_waits_for_the_list_counts_if_it_pays_somebody_more(ann: Visitor) -> None:
    path = checked(ann, _EIGHT, amount="300")
    form = hidden(ann.get(f"{path}/confirm"))
    for points, status in ((2_000, 409), (100, 303)):
        with started() as start, transaction() as other:
            other.execute(text("SELECT FROM uploads FOR UPDATE"))
            waits = start(partial(ann.client.post, f"{path}/confirm", data=form))
            until_waiting()
            books.refill_now(ann.organization_id, points)
            other.commit()
            answer = waits.result()
        assert answer.status_code == status
        form = hidden(answer)


def test_what_was_sent_lately_must_be_meant_in_any_order_and_is_none_of_the_other_mode(ann: Visitor) -> None:
    sent(ann, "email\na@example.com\nb@example.com\nc@example.com\n", **_SPRING)
    batch_id = value("SELECT max(id) FROM batches")
    path = checked(ann, "email\nnew@example.com\nC@example.com\nb@example.com\n", **_SPRING)
    for page in (path, f"{path}/cost", f"{path}/confirm"):
        told = words_of(ann.get(page))
        assert "recipients were sent the same points or the same label within 30 days: 2 the same points with" in told
        assert f'href="/console/live/batches/{batch_id}"' in ann.get(page).text
    unmeant = confirm(ann, path)
    assert unmeant.status_code == 409
    assert "Tick the box" in unmeant.text
    assert confirm(ann, path, again="yes").status_code == 303
    assert "sent points before" not in ann.get(checked(ann, _EIGHT, amount="1", mode="sandbox")).text
    other = checked(ann, "email\nb@example.com\nz@example.com\n", amount="5", label="Summer")
    unlike = ann.get(f"{other}/confirm")
    assert "1 the same points with another label" in words_of(unlike)
    assert "Yes, issue points to them again" not in unlike.text
    assert confirm(ann, other).status_code == 303


def test_a_list_that_points_send_has_sent_is_known(ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\n", amount="3")
    campaign = value("SELECT findings ->> 'campaign' FROM uploads")
    books.queue_batch(ann.organization_id, ["a@example.com"], 3, idempotency_key=f"points-send-{campaign}-1")
    assert "points send" in ann.get(path).text


def test_what_a_file_does_not_tell_is_asked(ann: Visitor) -> None:
    path = checked(ann, "first;private;work\nAnn;a@example.com;b@example.com\n")
    assert "“private” (2) and “work” (3)" in words_of(ann.get(path))
    assert ann.get(f"{path}/cost").location == path
    for column in ("", "7"):
        assert ann.post(path, of=path, column=column, amount="5").status_code == 400
    assert ann.post(path, of=path, column="2").status_code == 303
    assert "give the points for each recipient" in ann.get(path).text
    assert ann.post(path, of=path, column="2").status_code == 400
    assert ann.post(path, of=path, column="2", amount="5").status_code == 303
    assert "b@example.com" in words_of(ann.get(path))
    assert "a@example.com" not in words_of(ann.get(path)).partition("Not used")[0]


def test_rows_that_a_workbook_hides_are_asked_about_and_the_button_is_for_one_answer(ann: Visitor) -> None:
    path = checked(ann, misleading_xlsx(), file="people.xlsx")
    assert "11 rows with addresses in the sheet “People”: 1 of these rows is hidden in the workbook." in words_of(
        ann.get(path)
    )
    assert ann.post(path, of=path).status_code == 400
    forms, pages = {}, {}
    for choice in ("leave-out", "include"):
        assert ann.post(path, of=path, hidden_rows=choice).status_code == 303
        forms[choice], pages[choice] = hidden(ann.get(f"{path}/confirm")), words_of(ann.get(path))
    assert "4 error@example.com, 3, r-3, #DIV/0! It has in “label” (4) the error #DIV/0!: correct" in pages["include"]
    assert "3 hidden@example.com, 2, r-2, Spring It is hidden in the workbook, and left out" in pages["leave-out"]
    assert "Recipients 2" in pages["include"]
    assert "4 error@example.com 3 r-3 #DIV/0! left out , line 4" in pages["include"]
    assert ann.client.post(f"{path}/confirm", data=forms["leave-out"]).status_code == 409
    assert ann.client.post(f"{path}/confirm", data=forms["include"]).status_code == 303
    books.drain_all(ann.organization_id)
    assert [row["email"] for row in rows_of(ann.get(f"{path}/outcome.csv"))[:2]] == [
        "good@example.com",
        "hidden@example.com",
    ]


_EARNED = "email;Points earned;Pers. No.\na@example.com;7;r-1\nb@example.com;9;r-2\n"


def test_every_column_is_chosen_or_named_as_not_used(ann: Visitor) -> None:
    told = ann.get(path := checked(ann, _EARNED, amount="5"))
    assert "“Points earned” (2) holds figures and is not used: everybody gets 5 points." in words_of(told)
    for page in (told, ann.get(f"{path}/confirm")):
        assert "Not used “Points earned” (2), “Pers. No.” (3)" in words_of(page)
    assert ann.post(path, of=path, amount="5", amount_column="1").status_code == 400
    asked = words_of(ann.get(path := checked(ann, _EARNED)))
    assert "give the points for each recipient, or choose their column: “Points earned” (2) holds figures." in asked
    assert ann.post(path, of=path, amount_column="1", reference_column="2").status_code == 303
    confirmed = words_of(ann.get(f"{path}/confirm"))
    assert "address from “email” (1), amount from “Points earned” (2), reference from “Pers. No.” (3)" in confirmed
    assert "Issue 16 points to 2 recipients" in confirmed
    assert "Not used" not in confirmed


@pytest.mark.parametrize(("name", "text"), [("amount", "1.000"), ("amount", "1,5"), ("label", "x" * 256)])
def test_a_fault_in_one_field_keeps_the_file_of_another(ann: Visitor, name: str, text: str) -> None:
    fields = {"amount": "5", "label": "Spring"}
    page = ann.get(path := checked(ann, "email,points\na@example.com,7\n", **fields | {name: text}))
    assert "Your list is kept. Correct what is marked." in words_of(page)
    assert f'value="{text}"' in page.text
    assert 'class="wrong"' in page.text
    assert ann.get(f"{path}/confirm").location == path
    assert ann.post(path, of=path, **fields | {"amount": "1,000"}).status_code == 303
    assert "Points 1,000, 1,000 for each Label Spring" in words_of(ann.get(f"{path}/confirm"))


def test_what_is_no_list_is_refused_beside_its_field_and_not_kept(ann: Visitor) -> None:
    for fields, beside in (
        ({}, "Choose a file, or paste addresses below."),
        ({"pasted": "nobody here", "amount": "1"}, "The pasted list holds no e-mail address to send to"),
        ({"pasted": "a@example.com;b\nc@example.com,d", "amount": "1"}, "The pasted list may have"),
    ):
        answer = ann.post("/send", of="/send", **fields)
        assert answer.status_code == 400
        assert re.search(rf'class="wrong"[^>]*>[^<]*{re.escape(beside)}', answer.text), words_of(answer)
    too_large = upload(ann, b"x" * (settings().body_bytes_max + 1))
    assert too_large.status_code == 413
    assert "it may have up to 8 MB" in words_of(too_large)
    assert value("SELECT count(*) FROM uploads") == 0


def test_a_list_is_scheduled_for_a_time_of_the_members_zone_whoever_it_pays_now(ann: Visitor) -> None:
    _in(_ZONE)(ann, "")
    path, (fields, written) = checked(ann, _EIGHT, amount="1000000"), _later(zone=_ZONE)
    assert "too low for anybody" in words_of(ann.get(f"{path}/confirm"))
    page = words_of(_settled(ann, path, **fields))
    assert f"When {written}, in the time zone {_ZONE}" in page
    assert f"Schedule 8,000,000 points to 8 recipients for {written}" in page
    assert confirm(ann, path).location == f"{path}/outcome"
    assert f"8 recipients are scheduled for {written}" in words_of(ann.get(f"{path}/outcome"))
    local = datetime.fromisoformat(f"{fields['day']}T{fields['clock']}").replace(tzinfo=ZoneInfo(_ZONE))
    assert value("SELECT send_at FROM batches WHERE status = 'scheduled'") == local.astimezone(UTC)
    assert f", for {local.astimezone(UTC):%Y-%m-%d %H:%M} UTC" in words_of(ann.get("/activity"))
    assert books.drain_all(ann.organization_id) == []
    books.refill_now(ann.organization_id, 7_999_000)
    assert len(_let_scheduled_be_issued(ann)) == 1
    assert "8,000,000 points issued to 8 recipients." in words_of(ann.get(f"{path}/outcome"))


def test_a_time_that_is_none_is_a_sentence_and_keeps_the_list_as_it_was(ann: Visitor) -> None:
    _in(_ZONE)(ann, "")
    path = checked(ann, _EIGHT, amount="10")
    for day, clock, beside in (
        ("", "09:30", "Enter a day of the calendar, such as 2026-01-31."),
        ("2026-02-30", "09:30", "Enter a day of the calendar"),
        ("2999-01-01", "9.30", "Enter a time from 00:00 to 23:59"),
        ("2999-01-01", "09:30", "must be 1 minute to 366 days ahead, but is later."),
        ("2026-01-01", "09:30", "must be 1 minute to 366 days ahead, but is past."),
        ("2026-03-29", "02:30", "There is no 02:30 on 2026-03-29 in Europe/Berlin"),
        ("2026-10-25", "02:30", "02:30 comes twice on 2026-10-25 in Europe/Berlin"),
    ):
        answer = ann.post(f"{path}/cost", of=f"{path}/cost", when="later", day=day, clock=clock)
        assert answer.status_code == 400
        assert beside in words_of(answer)
    assert "When Now" in words_of(ann.get(f"{path}/confirm"))


def test_a_time_that_passes_while_the_page_is_open_schedules_nothing(ann: Visitor) -> None:
    path = checked(ann, _EIGHT, amount="10")
    form = hidden(_settled(ann, path, **_later()[0]))
    books.execute("UPDATE uploads SET send_at = now() - interval '1 minute'")
    assert "must be 1 minute to 366 days ahead, but is past" in words_of(ann.get(f"{path}/confirm"))
    assert ann.client.post(f"{path}/confirm", data=form).status_code == 409
    assert value("SELECT count(*) FROM batches") == 0


def test_all_or_nobody_issues_nothing_until_the_balance_pays_everybody(ann: Visitor) -> None:
    path = checked(ann, _EIGHT, amount="300")
    none = _settled(ann, path, when="now", atomic="y")
    assert "The balance pays 3 of 8 recipients, so with “all or nobody” nothing is issued." in words_of(none)
    books.refill_now(ann.organization_id, 1_400)
    assert confirm(ann, path).status_code == 303
    assert value("SELECT atomic FROM batches") is True
    books.drain_all(ann.organization_id)
    assert "2,400 points issued to 8 recipients." in words_of(ann.get(f"{path}/outcome"))


def test_a_list_of_several_batches_is_scheduled_whole_or_not_at_all(
    ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "3")
    monkeypatch.setattr("app.batches.accept.SCHEDULED_MAX", 3)
    forget_everything()
    answers = []
    for lines in (_EIGHT.replace("@", ".x@"), _EIGHT[:-32]):
        path = checked(ann, lines, amount="10")
        _settled(ann, path, **_later()[0])
        answers.append(confirm(ann, path).status_code)
    assert answers == [303, 409]
    assert value("SELECT count(*) FROM batches") == 3


def test_a_scheduled_batch_is_moved_once_and_not_when_it_is_issued(app: Flask, ann: Visitor) -> None:
    path, (fields, written) = checked(ann, "email,amount\na@example.com,5\nb@example.com,7\n"), _later(days=5)
    _settled(ann, path, **_later()[0])
    assert confirm(ann, path).status_code == 303
    batch, move = (f"/batches/{value('SELECT max(id) FROM batches')}{page}" for page in ("", "/move"))
    assert "Points to issue 12" in words_of(ann.get(batch))
    form = hidden(ann.get(move))
    for _ in range(2):
        assert ann.client.post(f"/console/live{move}", data=form | fields).location == f"/console/live{batch}"
    assert f"scheduled for {written}. Nothing is debited until then" in words_of(ann.get(batch))
    assert words_of(ann.get("/activity")).count("Moved live batch") == 1
    assert value("SELECT count(*) FROM unnumbered_events WHERE type = 'batch.scheduled'") == 2
    for wrong, beside in ((fields | {"clock": "25:00"}, "from 00:00 to 23:59"), (_later(days=-1)[0], "is past")):
        refused = ann.client.post(f"/console/live{move}", data=hidden(ann.get(move)) | wrong)
        assert refused.status_code == 400
        assert beside in words_of(refused)
    form, bob = hidden(ann.get(move)), visitor(app, ann.organization_id, "approver")
    bob.client.post(f"/console/live{move}", data=hidden(bob.get(move)) | _later(days=7)[0])
    assert ann.client.post(f"/console/live{move}", data=form | _later(days=6)[0]).location == f"/console/live{move}"
    moved = r"not what the page showed: batch 1 is scheduled \(\S+ \S+ UTC, Ann Approver: Moved live batch 1: to "
    assert re.search(moved, words_of(page := ann.get(move)))
    assert f"It is scheduled for {_later(days=7)[1]}" in words_of(page)
    _let_scheduled_be_issued(ann)
    assert ann.client.post(f"/console/live{move}", data=form | fields).location == f"/console/live{batch}"
    assert "It is too late: batch 1 is issued, so its time stays as it is" in words_of(ann.get(batch))
    assert ann.get(move).status_code == 303


def test_who_confirms_a_list_is_its_sender_whoever_has_given_it(app: Flask, ann: Visitor) -> None:
    path, bob = checked(ann, "email,amount\na@example.com,5\n"), visitor(app, ann.organization_id, "admin")
    assert confirm(bob, path).status_code == 303
    for page in ("/lists", f"{path}/outcome"):
        assert "Ann Admin" in words_of(bob.get(page)).split("By", 1)[1], page


def test_a_queued_batch_is_called_off_once_and_one_that_was_issued_meanwhile_is_not(ann: Visitor) -> None:
    first = f"/batches/{books.queue_batch(ann.organization_id, ['b@example.com'], 5, label='Oops')}"
    assert "Oops" in ann.get(f"{first}/cancel").text
    for _ in range(2):
        assert ann.post(f"{first}/cancel").status_code == 303
    assert books.drain_all(ann.organization_id) == []
    assert "cancelled" in words_of(ann.get(first))
    assert value("SELECT count(*) FROM actions WHERE action = 'batch.cancelled'") == 1
    second = f"/batches/{books.queue_batch(ann.organization_id, ['b@example.com'], 5)}"
    form = hidden(ann.get(f"{second}/cancel"))
    books.drain_all(ann.organization_id)
    ann.client.post(f"/console/live{second}/cancel", data=form)
    assert re.search('class="[a-z ]*bad" role="[a-z]+">It is too late: batch 2 is issued', ann.get(second).text)
    assert books.balance_of(ann.organization_id) == 995


def _computed_s() -> float:
    """Return the CPU time of this process, of the processes that it has started and that ended, and of its backends."""
    pids = books.values("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    backends = sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids if psutil.pid_exists(pid))
    return time.process_time() + ended.ru_utime + ended.ru_stime + backends


@pytest.mark.alone  # What else this process computes would count.
def test_a_hundred_thousand_lines_are_checked_in_five_seconds_and_sent_whole(ann: Visitor) -> None:
    lines = (f"someone.{i}@example{i % 50}.com,{i % 900 + 1},ref-{i},Spring" for i in range(100_000))
    written = "email,amount,reference,label\n" + "\n".join(lines) + "\n" + "bad\n" * 300
    before = _computed_s()
    path = checked(ann, written)
    page = ann.get(path)
    computed_s = _computed_s() - before
    print(f"checked in {computed_s:.1f} s")
    assert in_time(computed_s, 5, "process_time")
    assert "Recipients 100,000" in words_of(page)
    assert page.text.count('data-label="Reason"') == 100
    assert len(rows_of(ann.get(f"{path}/bad-lines.csv"))) == 300
    assert confirm(ann, path).status_code == 303
    assert value("SELECT sum(recipient_count) FROM batches WHERE status = 'queued'") == 100_000
