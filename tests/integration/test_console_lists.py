"""Everything that a page makes can be found again: lists with their outcome and result file, and reversals."""

import re

import pytest
from flask import Flask

from tests.integration import books
from tests.integration.test_console_send import checked, confirm, hidden, rows_of
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")


def _take_back(one: Visitor, batch_id: int, reason: str) -> None:
    path = f"/batches/{batch_id}/take-back"
    answer = one.client.post(f"/console/live{path}", data=hidden(one.get(path)) | {"reason": reason})
    assert answer.status_code == 303
    books.drain_all(one.organization_id)


def test_a_list_is_found_again_before_and_after_it_is_sent_with_who_when_and_outcome(app: Flask, ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\nb@example.com\nbad\n", amount="600", label="Spring")
    checked(ann, "one@example.com,two@example.com\n", amount="1", mode="sandbox")
    waiting = ann.get("/lists")
    assert f'href="{path}">people.csv' in waiting.text
    assert re.search(r"people.csv Spring \d{4}-\d\d-\d\d \d\d:\d\d UTC Ann Sender 2 1,200", words_of(waiting))
    assert waiting.text.count("people.csv") == 1
    confirm(ann, path)
    [batch_id] = books.drain_all(ann.organization_id)
    viewer = visitor(app, ann.organization_id, "viewer")
    sent = viewer.get("/lists")
    assert "No list waits to be sent." in words_of(sent)
    assert re.search(r"people.csv Spring \S+ \S+ UTC Ann Sender issued 1 of 2 600 Download", words_of(sent))
    [result] = re.findall(r'href="([^"]+/outcome.csv)"', sent.text)
    assert [row["state"] for row in rows_of(viewer.get(result))] == ["held", "unpaid", "left out"]
    assert f'href="{path}/outcome">people.csv' in viewer.get(f"/batches/{batch_id}").text
    assert "By Ann Sender" in words_of(viewer.get(f"{path}/outcome"))
    stranger = visitor(app, books.make_organization(), "admin", "stranger@example.com")
    assert "people.csv" not in stranger.get("/lists").text
    assert stranger.get(result).status_code == 404


def test_sent_lists_go_on_where_a_page_ends(ann: Visitor) -> None:
    books.execute(
        "INSERT INTO uploads (organization_id, member_id, sandbox, token, name, recipients, points, digest, sent_at,"
        f" batch_ids) SELECT 1, {ann.member_id}, false, 't' || n, 'list ' || n, 1, 1, 'd', now(), '{{}}'"
        " FROM generate_series(1, 120) n"
    )
    seen, path = [], "/lists"
    while path:
        page = ann.get(path).text
        seen += re.findall(r">list (\d+)</a>", page)
        path = next(iter(re.findall(r'href="([^"]+)">Older', page)), "")
    assert seen == [str(number) for number in range(120, 0, -1)]


def test_a_reversal_is_found_with_its_reason_from_the_batch_the_list_and_activity(app: Flask, ann: Visitor) -> None:
    batch_id = books.issue_now(ann.organization_id, ["a@example.com", "b@example.com"], 10)
    some = books.reverse_now(ann.organization_id, transaction_ids=[batch_id * 131_072], amount=4)
    _take_back(ann, batch_id, "Wrong & list")
    batch = ann.get(f"/batches/{batch_id}")
    [whole] = re.findall(r"/reversals/(\d+)", ann.get("/activity").text)
    assert re.findall(r"/reversals/(\d+)", batch.text) == [whole, str(some)]
    assert re.search(rf"{whole} \S+ \S+ UTC Ann Sender Wrong & list {batch_id} done 16", words_of(batch))
    assert re.search(rf"{some} \S+ \S+ UTC the API, with key \d+ a mistake some transactions done 4", words_of(batch))
    assert f"Took points back by live reversal {whole}: Wrong & list" in words_of(ann.get("/activity"))
    assert re.findall(r"/reversals/(\d+)", ann.get("/reversals").text) == [whole, str(some)]
    assert "/reversals/" not in re.sub('href="[^"]*/reversals"', "", ann.get("/console/sandbox/reversals").text)
    assert "By Ann Sender" in words_of(ann.get(f"/reversals/{whole}"))
    other = books.issue_now(ann.organization_id, ["c@example.com"], 10)
    assert "/reversals/" not in ann.get(f"/batches/{other}").text.partition("<main")[2]


def test_what_the_service_returned_says_so_among_the_reversals(ann: Visitor) -> None:
    batch_id = books.issue_now(ann.organization_id, ["a@example.com"], 10, hold_days=5)
    books.let_days_pass(6)
    books.return_unclaimed()
    assert "the service: held too long" in words_of(ann.get(f"/batches/{batch_id}"))
    assert "the service: held too long" in words_of(ann.get("/reversals"))


def test_activity_leads_to_what_was_done_in_its_own_mode(app: Flask, ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\n", amount="5", mode="sandbox")
    confirm(ann, path)
    [batch_id] = books.drain_all(ann.organization_id)
    page = ann.get("/activity").text
    assert f'href="/console/sandbox/batches/{batch_id}"' in page
    admin = visitor(app, ann.organization_id, "admin")
    admin.post("/keys", of="/keys", mode="live")
    assert 'href="/console/live/keys">Made' in admin.get("/activity").text
    assert 'href="/console/live/keys">Made' not in ann.get("/activity").text
