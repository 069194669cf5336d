"""Lists made from sent ones: the unpaid to send to later, and a sent list once more. One form makes one list."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.ledger.refill import refill
from app.postgres.database import transaction
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.test_console_send import checked, confirm, hidden, rows_of, upload, value
from tests.integration.visitors import Visitor, forgery_token, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")

_OWN = (
    "email,amount,reference,label\n"
    "a@example.com,600,=1,\nb@example.com,600,r-2,Own\nc@example.com,300,,\nd@example.com,900,+4,=Label\n"
)


def _sent(ann: Visitor, content: str, **fields: str) -> str:
    path = checked(ann, content, **fields)
    assert confirm(ann, path).status_code == 303
    books.drain_all(ann.organization_id)
    return path


def _pressed(ann: Visitor, page: str, to: str) -> TestResponse:
    """Press the button of a page whose form goes to `to`."""
    form = re.search(rf'action="{re.escape(to)}".*?</form>', ann.get(page).text, re.DOTALL)
    assert form, "the page has this button"
    return ann.client.post(to, data=dict(re.findall(r'name="(csrf_token|form_id)" value="([^"]*)"', form[0])))


def test_the_unpaid_become_a_list_with_their_own_values_and_are_paid_after_a_refill(
    ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    path = _sent(ann, _OWN, label="Spring")
    outcome = ann.get(f"{path}/outcome")
    assert "Send to the 2 unpaid" in words_of(outcome)
    file = ann.get(f"{path}/unpaid.csv")
    expected = [("b@example.com", "600", "r-2", "Own"), ("d@example.com", "900", "'+4", "'=Label")]
    assert [tuple(row.values())[:4] for row in rows_of(file)] == expected
    made = _pressed(ann, f"{path}/outcome", f"{path}/unpaid")
    page = words_of(ann.get(made.location))
    assert "unpaid of people.csv" in page
    assert "Points in all 1,500" in page
    assert "sent to before" not in page
    with transaction() as connection:
        refill(connection, ann.organization_id, 2_000)
    assert confirm(ann, made.location).status_code == 303
    books.drain_all(ann.organization_id)
    paid = rows_of(ann.get(f"{made.location}/outcome.csv"))
    assert [(row["email"], row["amount"], row["reference"], row["label"], row["state"]) for row in paid] == [
        (*row, "held") for row in expected
    ]
    assert "unpaid" not in words_of(ann.get(f"{made.location}/outcome")).partition("List")[0]
    downloaded = upload(ann, file.data)
    assert "sent to before" in words_of(ann.get(downloaded.location))


def test_the_unpaid_of_a_batch_become_a_list(ann: Visitor) -> None:
    batch_id = books.issue_now(ann.organization_id, ["a@example.com", "b@example.com"], 700)
    made = _pressed(ann, f"/batches/{batch_id}", f"/console/live/batches/{batch_id}/unpaid")
    page = words_of(ann.get(made.location))
    assert "Points in all 700" in page
    assert f"unpaid of batch {batch_id}" in page
    assert "First b@example.com" in page


def test_a_sent_list_becomes_a_new_one_that_must_be_meant(ann: Visitor) -> None:
    path = _sent(ann, "email,reference\na@example.com,=1\nb@example.com,r-2\nbad\n", amount="5", label="Spring")
    made = _pressed(ann, f"{path}/outcome", f"{path}/again")
    page = words_of(ann.get(made.location))
    assert "Points in all 10" in page
    assert "Label Spring" in page
    assert "These recipients were sent to before" in page
    assert "Points for each 5" in page
    assert confirm(ann, made.location).status_code == 409
    assert confirm(ann, made.location, again="yes").status_code == 303
    books.drain_all(ann.organization_id)
    paid = rows_of(ann.get(f"{made.location}/outcome.csv"))
    assert [(row["email"], row["reference"], row["label"]) for row in paid] == [
        ("a@example.com", "'=1", "Spring"),
        ("b@example.com", "r-2", "Spring"),
    ]


def test_one_form_makes_one_list(app: Flask, ann: Visitor, many_connections: None) -> None:
    path = _sent(ann, "email\na@example.com\n", amount="5")
    cookie = ann.client.get_cookie("points_console", path="/console")
    assert cookie is not None
    form = hidden(ann.get(f"{path}/outcome"))

    def click(_: int) -> TestResponse:
        client = app.test_client()
        client.set_cookie("points_console", cookie.value, path="/console")
        return client.post(f"{path}/again", data=form)

    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(click, range(8)), click(0)]
    assert {answer.location for answer in answers} == {f"/console/live/send/{form['form_id']}"}
    assert value("SELECT count(*) FROM uploads") == 2
    assert value("SELECT count(*) FROM batches") == 1


def test_a_list_that_is_not_sent_or_has_nobody_unpaid_becomes_no_other(app: Flask, ann: Visitor) -> None:
    unsent, paid = checked(ann, "email\na@example.com\n", amount="5"), _sent(ann, "email\nb@example.com\n", amount="5")
    form = {"csrf_token": forgery_token(ann.get()), "form_id": "f" * 24}
    assert ann.client.post(f"{unsent}/again", data=form).status_code == 404
    assert ann.client.post(f"{paid}/unpaid", data=form).location == f"{paid}/outcome"
    assert "Everybody was paid" in words_of(ann.get(f"{paid}/outcome"))
    eve = visitor(app, ann.organization_id, "viewer")
    own = form | {"csrf_token": forgery_token(eve.get())}
    assert [eve.client.post(f"{paid}/{what}", data=own).status_code for what in ("again", "unpaid")] == [403, 403]
    assert "Send this list again" not in eve.get(f"{paid}/outcome").text
    mallory = visitor(app, books.make_organization(50), "admin")
    other = form | {"csrf_token": forgery_token(mallory.get())}
    assert [mallory.client.post(f"{paid}/{what}", data=other).status_code for what in ("again", "unpaid")] == [404, 404]
    assert value("SELECT count(*) FROM uploads") == 2


def test_the_fields_of_points_and_label_offer_what_was_sent_last_and_nothing_else(ann: Visitor) -> None:
    _sent(ann, "email\na@example.com\n", amount="50", label="Spring")
    _sent(ann, "email\nb@example.com\n", amount="70", label='“May” & "June"')
    _sent(ann, "email\nc@example.com\n", amount="50")
    unsent = checked(ann, "email\nd@example.com\n", amount="99", label="Unsent")
    for page in ("/send", unsent):
        lists = dict(re.findall(r'<datalist id="lately-(\w+)">(.*?)</datalist>', ann.get(page).text))
        offered = {name: re.findall(r'value="([^"]*)"', options) for name, options in lists.items()}
        assert offered == {"amounts": ["50", "70"], "labels": ["“May” &amp; &#34;June&#34;", "Spring"]}
    assert 'value="50"' not in ann.get("/console/sandbox/send").text
