"""Sending from the console: a list is checked, costed, confirmed and issued once, and its outcome is all told."""

import csv
import re
import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from flask import Flask
from sqlalchemy import text
from werkzeug.test import TestResponse

from app.ledger.refill import refill
from app.postgres import connections
from app.postgres.connections import engine
from app.postgres.database import transaction
from app.settings import settings
from app.uploads import uploads
from tests.conftest import forget_everything
from tests.faulty_list import FAULTY_LIST
from tests.integration import books
from tests.integration.races import started, until_waiting
from tests.integration.visitors import Visitor, forgery_token, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")


def upload(of: Visitor, content: str | bytes, *, mode: str = "live", **fields: str) -> TestResponse:
    """Upload a list as a file; return the answer. The body is written out: Werkzeug leaves a long one open."""
    raw = content.encode() if isinstance(content, str) else content
    parts = [f'name="{name}"\r\n\r\n{text}\r\n'.encode() for name, text in fields.items()]
    own = hidden(of.get(f"/console/{mode}/send"))
    parts += [f'name="{name}"\r\n\r\n{own[name]}\r\n'.encode() for name in ("csrf_token", "form_id")]
    parts += [b'name="file"; filename="people.csv"\r\n\r\n%s\r\n' % raw]
    body = b"".join(b"--edge\r\nContent-Disposition: form-data; " + part for part in parts) + b"--edge--\r\n"
    return of.client.post(f"/console/{mode}/send", data=body, content_type="multipart/form-data; boundary=edge")


def checked(of: Visitor, content: str | bytes, *, mode: str = "live", **fields: str) -> str:
    """Upload a list; return the path of its check."""
    answer = upload(of, content, mode=mode, **fields)
    if answer.status_code == 200:  # The page of a long list leads on by itself.
        [path] = re.findall(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)
        return str(path)
    assert answer.status_code == 303, answer.text
    return answer.location


def confirm(of: Visitor, path: str, **fields: str) -> TestResponse:
    """Press the last button of a list, as its page offers it."""
    page = of.get(f"{path}/confirm")
    assert page.status_code == 200, page.text
    return of.client.post(f"{path}/confirm", data=hidden(page) | fields)


def hidden(page: TestResponse) -> dict[str, str]:
    return dict(re.findall(r'name="(csrf_token|seen|form_id)"[^>]* value="([^"]*)"', page.text))


def rows_of(file: TestResponse) -> list[dict[str, str]]:
    assert file.content_type == "text/csv; charset=utf-8"
    assert file.text.startswith("\ufeff"), "Excel takes it for UTF-8"
    return list(csv.DictReader(StringIO(file.text.removeprefix("\ufeff"))))


def value(statement: str) -> object:
    with transaction() as connection:
        return connection.execute(text(statement)).scalar()


def test_a_file_with_ten_kinds_of_faults_goes_to_its_outcome_and_back(ann: Visitor) -> None:
    books.make_users("ann@example.com")
    path = checked(ann, FAULTY_LIST, label="Spring")
    check = words_of(ann.get(path))
    assert "10 lines left out" in check
    assert "Recipients 3" in check
    assert "“e-mail” (2)" in check
    assert "the addresses in “manager_email” (5)" in check
    bad = rows_of(ann.get(f"{path}/bad-lines.csv"))
    assert [int(line["line"]) for line in bad] == list(range(4, 14))
    assert bad[3]["reason"].startswith("is the same address as line 2")
    assert bad[9]["e-mail"] == "'=cmd@example.com"
    assert "Needed 60" in words_of(ann.get(f"{path}/cost"))
    assert "Issue 60 points to 3 recipients" in ann.get(f"{path}/confirm").text
    done = confirm(ann, path)
    assert (done.status_code, done.location) == (303, f"{path}/outcome")
    assert "0 of 1 batch" in words_of(ann.get(done.location))
    [batch_id] = books.drain_all(ann.organization_id)
    assert "60 points issued to 3 recipients." in words_of(ann.get(done.location))
    outcome = rows_of(ann.get(f"{path}/outcome.csv"))
    assert [int(row["line"]) for row in outcome] == list(range(2, 15))
    assert [row["state"] for row in outcome] == ["credited", "held", *["left out"] * 10, "held"]
    assert [row["amount"] for row in outcome if row["amount"]] == ["10", "20", "30"]
    assert outcome[0]["label"] == "Spring"
    batch = ann.get(f"/batches/{batch_id}")
    assert "Sent by Ann Sender" in words_of(batch)
    asking = ann.get(f"/batches/{batch_id}/take-back")
    assert "Points to come back 60" in words_of(asking)
    form = hidden(asking)
    again = ann.client.post(f"/console/live/batches/{batch_id}/take-back", data=form | {"reason": " "})
    assert again.status_code == 400
    assert "Enter a reason" in again.text
    taken = [
        ann.client.post(f"/console/live/batches/{batch_id}/take-back", data=form | {"reason": "Wrong list"})
        for _ in range(2)
    ]
    assert len({answer.location for answer in taken}) == 1
    books.drain_all(ann.organization_id)
    assert "Points taken back 60" in words_of(ann.get(taken[0].location))
    assert books.balance_of(ann.organization_id) == 1_000
    actions = words_of(ann.get("/activity")) if ann.get("/activity").status_code == 200 else ""
    assert not actions or "60 points to 3 recipients" in actions


def test_sixteen_clicks_at_once_issue_once(app: Flask, ann: Visitor, many_connections: None) -> None:
    path = checked(ann, "email\n" + "".join(f"p{i}@example.com\n" for i in range(25)), amount="4")
    form = hidden(ann.get(f"{path}/confirm"))
    cookie = ann.client.get_cookie("points_console", path="/console")
    assert cookie is not None

    def click(_: int) -> TestResponse:
        client = app.test_client()
        client.set_cookie("points_console", cookie.value, path="/console")
        return client.post(f"{path}/confirm", data=form)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(click, range(16)))
    assert {(answer.status_code, answer.location) for answer in answers} == {(303, f"{path}/outcome")}
    assert len(books.drain_all(ann.organization_id)) == 1
    assert books.balance_of(ann.organization_id) == 900


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


def test_a_list_longer_than_a_batch_is_accepted_whole_and_in_order(
    monkeypatch: pytest.MonkeyPatch, ann: Visitor
) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "10")
    forget_everything()
    emails = [f"p{i}@example.com" for i in range(25)]
    path = checked(ann, "email\nbad line\n" + "\n".join(emails), amount="50")
    cost = words_of(ann.get(f"{path}/cost"))
    assert "It pays 20 of 25 recipients" in cost
    assert "it is sent as 3 batches" in cost
    assert "Issue 1,000 points to 20 of 25 recipients" in words_of(ann.get(f"{path}/confirm"))
    assert confirm(ann, path).status_code == 303
    assert "0 of 3 batches" in words_of(ann.get(f"{path}/outcome"))
    books.drain_all(ann.organization_id)
    outcome = rows_of(ann.get(f"{path}/outcome.csv"))
    assert [row["email"] for row in outcome] == ["bad line", *emails]
    assert [row["state"] for row in outcome] == ["left out", *["held"] * 20, *["unpaid"] * 5]
    assert len({row["batch_id"] for row in outcome}) == 4
    assert [int(row["line"]) for row in outcome] == list(range(2, 28))


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


def test_a_suspension_between_the_cost_and_the_confirmation_is_said_once(ann: Visitor) -> None:
    path = checked(ann, "email,amount\na@example.com,1\n")
    form = hidden(ann.get(f"{path}/confirm"))
    books.execute("UPDATE organizations SET is_suspended = true")
    refused = ann.client.post(f"{path}/confirm", data=form)
    assert refused.status_code == 409
    assert refused.text.count("is suspended") == 1
    assert "Missing" not in ann.get(f"{path}/cost").text


def test_the_same_list_again_must_be_meant(ann: Visitor) -> None:
    list_ = "email\na@example.com\nb@example.com\n"
    confirm(ann, checked(ann, list_, amount="1"))
    other = checked(ann, list_.upper(), amount="2")
    assert "sent to before" in ann.get(other).text
    unmeant = confirm(ann, other)
    assert unmeant.status_code == 409
    assert "Tick the box" in unmeant.text
    assert confirm(ann, other, again="yes").status_code == 303
    assert "sent to before" not in ann.get(checked(ann, list_, amount="1", mode="sandbox")).text


def test_a_list_that_points_send_has_sent_is_known(ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\n", amount="3")
    campaign = value("SELECT findings ->> 'campaign' FROM uploads")
    books.queue_batch(ann.organization_id, ["a@example.com"], 3, idempotency_key=f"points-send-{campaign}-1")
    assert "points send" in ann.get(path).text


def test_what_a_file_does_not_tell_is_asked(ann: Visitor) -> None:
    path = checked(ann, "first;private;work\nAnn;a@example.com;b@example.com\n")
    asking = ann.get(path)
    assert "“private” (2) and “work” (3)" in words_of(asking)
    assert ann.get(f"{path}/cost").location == path
    assert "Choose the column." in ann.post(path, of=path, amount="5").text
    assert ann.post(path, of=path, column="7", amount="5").status_code == 400
    assert ann.post(path, of=path, column="2").status_code == 303
    assert "give the points for each recipient" in ann.get(path).text
    assert "Enter the points for each recipient" in ann.post(path, of=path, column="2").text
    assert ann.post(path, of=path, column="2", amount="5").status_code == 303
    assert "b@example.com" in words_of(ann.get(path))
    assert "a@example.com" not in words_of(ann.get(path)).partition("Not used")[0]


@pytest.mark.parametrize(
    ("fields", "beside"),
    [
        ({}, "Choose a file, or paste addresses below."),
        (
            {"pasted": "nobody here", "amount": "1"},
            "The pasted list holds no e-mail address to send to",
        ),
        ({"pasted": "a@example.com;b\nc@example.com,d", "amount": "1"}, "The pasted list may have"),
        ({"pasted": "a@example.com", "amount": "ten"}, "must be a whole number, digits only."),
        ({"pasted": "a@example.com", "amount": "0"}, "must be between 1 and"),
        ({"pasted": "a@example.com", "amount": "1", "label": "x" * 256}, "255"),
    ],
)
def test_what_is_wrong_with_a_list_stands_beside_its_field(ann: Visitor, fields: dict[str, str], beside: str) -> None:
    answer = ann.post("/send", of="/send", **fields)
    assert answer.status_code == 400
    assert re.search(rf'class="wrong"[^>]*>[^<]*{re.escape(beside)}', answer.text), words_of(answer)
    assert value("SELECT count(*) FROM uploads") == 0


def test_pasted_addresses_are_a_list_too(ann: Visitor) -> None:
    answer = ann.post("/send", of="/send", pasted="a@example.com\r\n b@example.com \r\n\r\n", amount="7")
    assert "Points in all 14" in words_of(ann.get(answer.location))


_TWO_COLUMNS = "private;work;amount\na@example.com;b@example.com;1\nc@example.com;d@example.com;3\n"


def _is_refused_as_changed(answer: TestResponse) -> None:
    assert answer.status_code == 409
    assert "The list was changed since you looked" in answer.text
    assert value("SELECT count(*) FROM batches") == 0
    assert value("SELECT count(*) FROM uploads WHERE sent_at IS NOT NULL") == 0


@pytest.mark.parametrize(
    ("changed", "now"),
    [
        ({"column": "1"}, [("b@example.com", "1", "Spring"), ("d@example.com", "3", "Spring")]),
        ({"label": "Autumn"}, [("a@example.com", "1", "Autumn"), ("c@example.com", "3", "Autumn")]),
        ({"label": ""}, [("a@example.com", "1", ""), ("c@example.com", "3", "")]),
        ({"amount": "2"}, [("a@example.com", "2", "Spring"), ("c@example.com", "2", "Spring")]),
    ],
    ids=["column", "label", "no label", "amount"],
)
def test_what_another_window_has_changed_is_shown_before_it_is_issued(
    ann: Visitor, changed: dict[str, str], now: list[tuple[str, str, str]]
) -> None:
    path, first = checked(ann, _TWO_COLUMNS), {"column": "0", "amount": "", "label": "Spring"}
    assert ann.post(path, of=path, **first).status_code == 303
    form = hidden(ann.get(f"{path}/confirm"))
    assert ann.post(path, of=path, **first | changed).status_code == 303
    refused = ann.client.post(f"{path}/confirm", data=form)
    _is_refused_as_changed(refused)
    assert now[0][0] in words_of(refused)
    assert ann.client.post(f"{path}/confirm", data=hidden(refused)).status_code == 303
    books.drain_all(ann.organization_id)
    outcome = rows_of(ann.get(f"{path}/outcome.csv"))
    assert [(row["email"], row["amount"], row["label"]) for row in outcome] == now


def test_a_list_changed_into_one_that_was_sent_before_is_said_to_be_changed(ann: Visitor) -> None:
    confirm(ann, checked(ann, "email\nb@example.com\n", amount="5"))
    path = checked(ann, "private;work\na@example.com;b@example.com\n")
    for column in "01":
        form = hidden(ann.get(f"{path}/confirm"))
        assert ann.post(path, of=path, column=column, amount="5").status_code == 303
    refused = ann.client.post(f"{path}/confirm", data=form)
    assert "The list was changed since you looked" in refused.text
    assert "Yes, issue points to them again" in refused.text


_SPRING = {"amount": "5", "label": "Spring"}


def test_the_same_to_most_of_a_list_must_be_meant_in_another_order_too(ann: Visitor) -> None:
    batch_id = _confirmed(ann, "email\na@example.com\nb@example.com\nc@example.com\n", **_SPRING)
    path = checked(ann, "email\nnew@example.com\nC@example.com\nb@example.com\n", **_SPRING)
    for page in (path, f"{path}/cost", f"{path}/confirm"):
        told = words_of(ann.get(page))
        assert "2 of 3 recipients were sent the like within 30 days: 2 the same points with the same label" in told
        assert f"They are in batch {batch_id} (2 of them," in told
        assert f'href="/console/live/batches/{batch_id}"' in ann.get(page).text
    refused = confirm(ann, path)
    assert refused.status_code == 409
    assert "Recipients of this list were sent to before. Tick the box" in refused.text
    assert confirm(ann, path, again="yes").status_code == 303


def test_as_many_points_under_another_label_are_told_and_need_no_second_word(ann: Visitor) -> None:
    _confirmed(ann, "email\na@example.com\nb@example.com\n", **_SPRING)
    path = checked(ann, "email\nb@example.com\nz@example.com\n", amount="5", label="Summer")
    page = ann.get(f"{path}/confirm")
    assert "1 of 2 recipients was sent the like within 30 days: 1 the same points with another label" in words_of(page)
    assert "Yes, issue points to them again" not in page.text
    assert confirm(ann, path).status_code == 303
    other = words_of(ann.get(checked(ann, "email\nb@example.com\na@example.com\n", amount="6", label="Summer")))
    assert "1 of 2 recipients was sent the like within 30 days: 1 other points with the same label" in other


def test_what_is_sent_to_the_recipients_between_the_look_and_the_button_is_shown_first(ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\nb@example.com\n", **_SPRING)
    form = hidden(ann.get(f"{path}/confirm"))
    books.queue_batch(ann.organization_id, ["B@example.com"], 5, label="Spring")
    refused = ann.client.post(f"{path}/confirm", data=form)
    assert refused.status_code == 409
    assert "or its recipients were sent points meanwhile" in words_of(refused)
    assert "1 of 2 recipients was sent the like within 30 days" in words_of(refused)
    assert "not issued yet" in refused.text
    assert ann.client.post(f"{path}/confirm", data=hidden(refused) | {"again": "yes"}).status_code == 303


def _confirmed(ann: Visitor, content: str, **fields: str) -> int:
    confirm(ann, checked(ann, content, **fields))
    [batch_id] = books.drain_all(ann.organization_id)
    return batch_id


def test_a_list_that_another_window_has_left_with_a_question_is_not_issued(ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\n", amount="3")
    form = hidden(ann.get(f"{path}/confirm"))
    assert ann.post(path, of=path, amount="").status_code == 303
    asked = ann.client.post(f"{path}/confirm", data=form)
    assert (asked.status_code, asked.location) == (303, path)
    assert "Nothing was issued. The list was changed since you looked" in ann.get(path).text
    assert value("SELECT count(*) FROM batches") == 0


def _eight(ann: Visitor, *, mode: str = "live", amount: str = "300") -> str:
    return checked(ann, "email\n" + "".join(f"p{i}@example.com\n" for i in range(8)), amount=amount, mode=mode)


def _refill(ann: Visitor, points: int) -> None:
    with transaction() as connection:
        refill(connection, ann.organization_id, points)


def test_a_button_for_three_of_eight_does_not_pay_all_after_a_refill(ann: Visitor) -> None:
    path = _eight(ann)
    page = ann.get(f"{path}/confirm")
    assert "Issue 900 points to 3 of 8 recipients" in words_of(page)
    assert "3 of 8 recipients, 900 points" in words_of(page)
    _refill(ann, 2_000)
    refused = ann.client.post(f"{path}/confirm", data=hidden(page))
    _is_refused_as_changed(refused)
    assert "Issue 2,400 points to 8 recipients" in words_of(refused)
    assert ann.client.post(f"{path}/confirm", data=hidden(refused)).status_code == 303


def test_a_button_for_all_does_not_pay_a_part_once_the_balance_is_lower(ann: Visitor) -> None:
    path = _eight(ann, amount="100")
    form = hidden(ann.get(f"{path}/confirm"))
    books.issue_now(ann.organization_id, ["other@example.com"], 300)
    refused = ann.client.post(f"{path}/confirm", data=form)
    assert refused.status_code == 409
    assert "Issue 700 points to 7 of 8 recipients" in words_of(refused)
    assert value("SELECT count(*) FROM batches") == 1


def test_a_refill_that_lands_while_the_button_waits_for_the_list_counts(ann: Visitor) -> None:
    path = _eight(ann)
    form = hidden(ann.get(f"{path}/confirm"))
    with started() as start, transaction() as other:
        other.execute(text("SELECT FROM uploads FOR UPDATE"))
        waits = start(lambda: ann.client.post(f"{path}/confirm", data=form))
        until_waiting()
        _refill(ann, 2_000)
        other.commit()
        _is_refused_as_changed(waits.result())


def test_a_refill_that_pays_nobody_more_changes_nothing(ann: Visitor) -> None:
    path = _eight(ann)
    form = hidden(ann.get(f"{path}/confirm"))
    _refill(ann, 100)
    assert ann.client.post(f"{path}/confirm", data=form).status_code == 303


def test_the_button_of_one_list_or_mode_issues_no_other(ann: Visitor) -> None:
    live, other, sandbox = _eight(ann, amount="1"), _eight(ann, amount="1"), _eight(ann, amount="1", mode="sandbox")
    form = hidden(ann.get(f"{live}/confirm"))
    for path in (other, sandbox):
        _is_refused_as_changed(ann.client.post(f"{path}/confirm", data=form))
    books.execute("UPDATE uploads SET sandbox = true")
    _is_refused_as_changed(ann.client.post(f"{live.replace('/live/', '/sandbox/')}/confirm", data=form))


def test_who_is_shown_as_paid_of_several_batches_is_paid(monkeypatch: pytest.MonkeyPatch, ann: Visitor) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    amounts = {"a": 600, "b": 600, "c": 300, "d": 200, "e": 100}
    lines = "".join(f"{name}@example.com,{amount}\n" for name, amount in amounts.items())
    path = checked(ann, f"email,amount\n{lines}")
    assert "3 of 5 recipients, 1,000 points" in words_of(ann.get(f"{path}/confirm"))
    assert confirm(ann, path).status_code == 303
    books.drain_all(ann.organization_id)
    states = [row["state"] for row in rows_of(ann.get(f"{path}/outcome.csv"))]
    assert states == ["held", "unpaid", "held", "unpaid", "held"]


def test_a_sandbox_list_moves_no_real_points(ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\n", amount="300", mode="sandbox")
    assert "sandbox" in words_of(ann.get(f"{path}/confirm"))
    assert ann.get(path.replace("/sandbox/", "/live/")).status_code == 404
    confirm(ann, path)
    books.drain_all(ann.organization_id)
    assert books.balance_of(ann.organization_id) == 1_000
    assert books.balance_of(ann.organization_id, sandbox=True) == 200


def test_a_viewer_sends_cancels_and_reverses_by_no_form(app: Flask, ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\n", amount="3")
    form = hidden(ann.get(f"{path}/confirm"))
    batch_id = books.queue_batch(ann.organization_id, ["b@example.com"], 5)
    eve = visitor(app, ann.organization_id, "viewer")
    own = {"csrf_token": forgery_token(eve.get())}
    forms = [
        *((f"{path}{step}", form | own) for step in ("", "/confirm")),
        ("/console/live/send", own | {"pasted": "a@example.com", "amount": "1", "form_id": "f" * 24}),
        (f"/console/live/batches/{batch_id}/cancel", own),
        (f"/console/live/batches/{batch_id}/take-back", own | {"reason": "x", "form_id": "f" * 24}),
    ]
    assert [eve.client.post(to, data=fields).status_code for to, fields in forms] == [403] * len(forms)
    assert [eve.get(of).status_code for of in ("/send", path, f"{path}/cost", f"{path}/confirm")] == [403] * 4
    seen = ("/batches", f"/batches/{batch_id}", "/transactions", "/held")
    assert [eve.get(of).status_code for of in seen] == [200] * 4
    assert "Cancel it" not in eve.get(f"/batches/{batch_id}").text
    books.execute(f"UPDATE members SET role = 'viewer' WHERE id = {ann.member_id}")
    assert ann.client.post(f"{path}/confirm", data=form).status_code == 403
    assert books.drain_all(ann.organization_id) == [batch_id]


def test_another_organization_meets_nothing_of_this_one(app: Flask, ann: Visitor) -> None:
    path = checked(ann, "email\nsecret@example.com\n", amount="3")
    confirm(ann, path)
    [batch_id] = books.drain_all(ann.organization_id)
    waiting = books.queue_batch(ann.organization_id, ["more@example.com"], 5)
    form = hidden(ann.get(f"/batches/{batch_id}/take-back")) | {"reason": "x"}
    reversal = ann.client.post(f"/console/live/batches/{batch_id}/take-back", data=form).location
    mallory = visitor(app, books.make_organization(50), "admin")
    own = {"csrf_token": forgery_token(mallory.get())}
    pages = [path, *(f"{path}/{step}" for step in ("cost", "confirm", "outcome", "outcome.csv", "bad-lines.csv"))]
    pages += [f"/console/live/batches/{batch_id}{step}" for step in ("", "/outcome.csv", "/take-back", "/cancel")]
    pages.append(reversal)
    assert {page: mallory.get(page).status_code for page in pages} == dict.fromkeys(pages, 404)
    forms = [path, f"{path}/confirm", *(f"/console/live/batches/{waiting}/{what}" for what in ("cancel", "take-back"))]
    fields = own | {"reason": "x", "form_id": "f" * 24, "seen": "0" * 64, "again": "yes", "amount": "3"}
    assert {to: mallory.client.post(to, data=fields).status_code for to in forms} == dict.fromkeys(forms, 404)
    for page in ("/batches", "/transactions", "/held", "/batches?email=secret@example.com"):
        assert "secret@example.com" not in words_of(mallory.get(page)).replace("?email", "")
        assert f"/batches/{batch_id}" not in mallory.get(page).text
    assert value(f"SELECT status FROM batches WHERE id = {waiting}") == "queued"


def test_a_queued_batch_is_called_off_once(ann: Visitor) -> None:
    batch_id = books.queue_batch(ann.organization_id, ["b@example.com"], 5, label="Oops")
    assert "Oops" in ann.get(f"/batches/{batch_id}/cancel").text
    for _ in range(2):
        assert ann.post(f"/batches/{batch_id}/cancel").status_code == 303
    assert books.drain_all(ann.organization_id) == []
    assert "cancelled" in words_of(ann.get(f"/batches/{batch_id}"))
    assert value("SELECT count(*) FROM actions WHERE action = 'batch.cancelled'") == 1


def test_a_batch_that_was_issued_meanwhile_is_not_called_off(ann: Visitor) -> None:
    batch_id = books.queue_batch(ann.organization_id, ["b@example.com"], 5)
    page = ann.get(f"/batches/{batch_id}/cancel")
    books.drain_all(ann.organization_id)
    ann.client.post(f"/console/live/batches/{batch_id}/cancel", data=hidden(page))
    assert "was issued or refused meanwhile" in ann.get(f"/batches/{batch_id}").text
    assert books.balance_of(ann.organization_id) == 995


def test_transactions_are_found_by_address_reference_and_state(ann: Visitor) -> None:
    books.make_users("b@example.com")
    books.queue_batch(ann.organization_id, ["a@example.com", "b@example.com"], 5, references=["r-1", "r-2"])
    books.drain_all(ann.organization_id)
    found = {
        query: [email for email in ("a@example.com", "b@example.com") if f">{email}" in ann.get(query).text]
        for query in (
            "/transactions?email=&reference=&state=",
            "/transactions?email=A@example.com",
            "/transactions?reference=r-2",
            "/transactions?state=held",
            "/transactions?state=unpaid",
            "/held",
        )
    }
    assert list(found.values()) == [
        ["a@example.com", "b@example.com"],
        ["a@example.com"],
        ["b@example.com"],
        ["a@example.com"],
        [],
        ["a@example.com"],
    ]
    wrong = ann.get("/batches?email=nobody").text
    assert "must be an e-mail address" in wrong
    assert "/batches/1" not in wrong


def test_a_long_batch_is_shown_in_pages(ann: Visitor) -> None:
    batch_id = books.queue_batch(ann.organization_id, [f"p{i}@example.com" for i in range(250)], 1)
    books.drain_all(ann.organization_id)
    assert "Transactions 1 to 100 of 250" in words_of(ann.get(f"/batches/{batch_id}"))
    last = ann.get(f"/batches/{batch_id}?from=201")
    assert "p249@example.com" in last.text
    assert ">Next<" not in last.text
    assert len(rows_of(ann.get(f"/batches/{batch_id}/outcome.csv"))) == 250


def test_lists_past_their_time_are_dropped_and_a_sent_one_is_still_known(ann: Visitor) -> None:
    list_ = "email\na@example.com\nbad\n"
    sent, unsent, young = (checked(ann, list_, amount=amount) for amount in "123")
    assert confirm(ann, sent).status_code == 303
    books.execute(
        "UPDATE uploads SET created_at = now() - interval '8 days' WHERE amount = 2",
        "UPDATE uploads SET created_at = now() - interval '32 days' WHERE amount = 1",
    )
    forgotten = []
    for _ in range(3):
        with transaction() as connection:
            forgotten.append(uploads.forget(connection, at_most=1))
    assert forgotten == [1, 1, 0]
    assert [ann.get(path).status_code for path in (sent, unsent, young)] == [302, 404, 200]
    [batch_id] = books.drain_all(ann.organization_id)
    outcome = words_of(ann.get(f"{sent}/outcome"))
    assert "no longer kept" in outcome
    assert f"1 batch Batch Status Recipients Points Batch {batch_id} issued" in outcome
    [row] = rows_of(ann.get(f"{sent}/outcome.csv"))
    assert (row["line"], row["email"], row["state"]) == ("", "a@example.com", "held")
    assert "sent to before" in ann.get(young).text


def test_an_organization_keeps_few_lists_that_it_does_not_send(ann: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "UNSENT_MAX", 2)
    paths = [checked(ann, "email\na@example.com\n", amount="1") for _ in range(3)]
    assert [ann.get(path).status_code for path in paths] == [404, 200, 200]


@pytest.mark.alone
def test_a_hundred_thousand_lines_are_checked_in_five_seconds_and_sent_whole(ann: Visitor) -> None:
    lines = (f"someone.{i}@example{i % 50}.com,{i % 900 + 1},ref-{i},Spring" for i in range(100_000))
    written = "email,amount,reference,label\n" + "\n".join(lines) + "\n" + "bad\n" * 300
    for _ in range(3):  # A check that is slow is slow each time; a machine that is busy elsewhere makes it slow once.
        began = time.monotonic()
        path = checked(ann, written)
        page = ann.get(path)
        seconds = time.monotonic() - began
        print(f"checked in {seconds:.1f} s")
        if seconds < 5:
            break
    assert seconds < 5
    assert "Recipients 100,000" in words_of(page)
    assert page.text.count('data-label="Reason"') == 100
    assert len(rows_of(ann.get(f"{path}/bad-lines.csv"))) == 300
    assert confirm(ann, path).status_code == 303
    assert value("SELECT sum(recipient_count) FROM batches WHERE status = 'queued'") == 100_000


def test_the_limits_of_the_interface_hold_here(ann: Visitor) -> None:
    assert upload(ann, b"x" * (settings().body_bytes_max + 1)).status_code == 413
