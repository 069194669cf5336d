"""A second pair of eyes in the console: who sees what awaits an approval, who answers it, and who is who."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

import pytest
from flask import Flask
from sqlalchemy import Connection, text

from app import api_keys, organizations
from app.api_keys import Caller
from app.batches import approval
from app.members import members
from app.platform import keys as platform_keys
from app.postgres.database import transaction
from app.scope import Author
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.console_lists import checked, confirm, hidden, rows_of, value
from tests.integration.races import at_once
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker", "balanced")

_LIST = "email,amount\nada@example.com,30\nbob@example.com,71\n"


@pytest.fixture
def organization_id() -> int:
    """Make an organization that approves what is of more than 100 points."""
    made = books.make_organization(1_000, sandbox_balance=500)
    books.run(organizations.change, made, {"approval_above": 100})
    return made


def _send(of: Visitor) -> str:
    """Send a list of 101 points; return the path of its batch."""
    path = checked(of, _LIST, label="Spring")
    page = words_of(of.get(f"{path}/confirm"))
    assert "It awaits an approval by somebody other than you , because it is of more than 100 points." in page
    answer = confirm(of, path, again="yes")
    assert answer.status_code == 303, answer.text
    outcome = words_of(of.get(answer.location))
    assert "Awaiting approval" in outcome
    return f"/batches/{value('SELECT max(id) FROM batches')}"


def test_a_list_above_the_limit_is_issued_once_an_approver_who_has_not_sent_it_says_so(
    app: Flask, organization_id: int
) -> None:
    ann, bo, cy = (visitor(app, organization_id, role) for role in ("sender", "approver", "viewer"))
    batch = _send(ann)
    assert [("1 awaits your answer" in words_of(one.get())) for one in (ann, bo, cy)] == [False, True, False]
    assert "your answer" not in bo.get("/console/sandbox").text
    for one, words in ((ann, "Look at it"), (cy, "Look at it"), (bo, "Approve or reject it")):
        assert f"1 batch awaits an approval. Nothing is debited before. {words}" in words_of(one.get())
        waiting = one.get("/batches?status=awaiting_approval")
        assert batch in waiting.text
        assert "awaiting approval Spring 2 101" in words_of(waiting)
    for one in (ann, cy):
        assert "awaiting approval" in words_of(one.get(batch))
        assert "Approve or reject it" not in one.get(batch).text
    assert "Approve or reject it" in bo.get(batch).text
    page = words_of(bo.get(f"{batch}/approval"))
    assert "Points to issue 101 to 2 recipients Balance now 1,000 Sent by Ann Sender" in page
    assert "ada@example.com 30 Spring – bob@example.com 71 Spring –" in page
    answer = bo.post(f"{batch}/approve", of=f"{batch}/approval")
    assert answer.status_code == 303
    assert "is approved." in words_of(bo.get(answer.location))
    assert bo.post(f"{batch}/approve").status_code == 303, "again, it changes nothing"
    books.drain_all(organization_id)
    shown = words_of(ann.get(batch))
    assert "issued at" in shown
    assert "by Ann Approver" in shown
    assert books.balance_of(organization_id) == 899
    activity = words_of(cy.get("/activity"))
    assert activity.count("Approved live batch") == 1
    assert "101 points to 2 recipients, awaiting an approval" in activity
    assert bo.get(f"{batch}/approval").location.endswith(batch)


def test_a_batch_is_rejected_with_a_reason_which_its_sender_sees(app: Flask, organization_id: int) -> None:
    ann, mary = visitor(app, organization_id, "sender"), visitor(app, organization_id, "admin")
    batch = _send(ann)
    form = f"{batch}/approval"
    for bad, sentence in (("", "Enter a reason"), ("x" * 256, "at most 255 characters")):
        answer = mary.post(f"{batch}/reject", of=form, reason=bad)
        assert answer.status_code == 400
        assert sentence in answer.text
    assert mary.post(f"{batch}/reject", of=form, reason="The wrong list").status_code == 303
    assert "rejected : The wrong list. Nobody was debited." in words_of(ann.get(batch))
    assert "Rejected live batch" in words_of(ann.get("/activity"))
    assert "awaits an approval" not in words_of(mary.get())
    late = mary.post(f"{batch}/approve", of="/members")
    assert "it was rejected" in words_of(mary.get(late.location))
    assert books.balance_of(organization_id) == 1_000
    [token] = books.values("SELECT token FROM uploads WHERE sent_at IS NOT NULL")
    assert "This list was rejected: nobody was debited." in words_of(ann.get(f"/send/{token}/outcome"))
    assert "rejected" in words_of(ann.get("/lists"))
    again = checked(ann, _LIST, label="Spring")
    assert "sent points before" not in words_of(ann.get(again))
    assert 'name="again"' not in ann.get(f"{again}/confirm").text
    assert confirm(ann, again).status_code == 303
    assert "sent points before" in words_of(ann.get(checked(ann, _LIST, label="Spring"))), "that one awaits an answer"


def test_nobody_approves_what_he_has_sent_whatever_the_role(app: Flask, organization_id: int) -> None:
    mary = visitor(app, organization_id, "admin")
    batch = _send(mary)
    assert "your answer" not in mary.get().text
    assert f"{batch}/approve" not in mary.get(f"{batch}/approval").text
    for verb in ("approve", "reject"):
        told = mary.post(f"{batch}/{verb}", of="/members", reason="x")
        assert "Whoever has sent a batch cannot" in words_of(mary.get(told.location))
    cancelled = mary.post(f"{batch}/cancel", of=f"{batch}/cancel")
    assert "is cancelled: nobody was debited" in words_of(mary.get(cancelled.location))


class _Party(NamedTuple):
    """A member or a key: whose pair of eyes it is, how it sends a batch, and how it is refused as the sender's."""

    person: str
    send: Callable[[], int]
    is_refused: Callable[[int, str], bool]


def _by_member(person: str, of: Visitor) -> _Party:
    def is_refused(batch_id: int, verb: str) -> bool:
        told = of.post(f"/batches/{batch_id}/{verb}", of="/batches", reason="x")
        return "Whoever has sent a batch cannot" in words_of(of.get(told.location))

    return _Party(person, lambda: int(_send(of).rpartition("/")[2]), is_refused)


def _by_key(person: str, app: Flask, key: str) -> _Party:
    client, headers = app.test_client(), {"Authorization": f"Bearer {key}"}

    def send() -> int:
        body = {"recipients": ["ada@example.com"], "amount": 101}
        answer = client.post("/v1/points/send", json=body, headers=headers | {"Prefer": "respond-async"})
        return int(answer.get_json()["data"]["batch_id"])

    def is_refused(batch_id: int, verb: str) -> bool:
        body = {"reason": "x"} if verb == "reject" else None
        answer = client.post(f"/v1/batches/{batch_id}/{verb}", json=body, headers=headers)
        return answer.status_code == 403 and "batch" in answer.get_json()["errors"]

    return _Party(person, send, is_refused)


def _key_of_member(of: Visitor) -> str:
    """Make a key on the page."""
    [key] = re.findall(r"pts_live_\w+", of.post("/keys", of="/keys", name="Till", mode="live").text)
    return str(key)


def _key_made_by(organization_id: int, by: Author) -> str:
    with transaction(by=by) as connection:
        return api_keys.create(connection, organization_id, sandbox=False)[1]


def test_one_person_is_one_pair_of_eyes_as_any_member_and_by_any_key_of_theirs(
    app: Flask, organization_id: int
) -> None:
    books.run(organizations.change, organization_id, {"approval_of": "all"})
    bo = visitor(app, organization_id, "admin")
    early = visitor(app, organization_id, "admin", "Cy.Early@example.com")
    program = Author(platform_key_id=books.run(platform_keys.create, "Sign-up")[0].id)
    parties = {
        "Cy, later removed": _by_member("Cy", early),
        "key of Cy, later removed": _by_key("Cy", app, _key_of_member(early)),
        "Bo": _by_member("Bo", bo),
        "key of Bo": _by_key("Bo", app, _key_of_member(bo)),
        "another key of Bo": _by_key("Bo", app, _key_of_member(bo)),
        "key of a program": _by_key("key 1", app, _key_made_by(organization_id, program)),
        "another of that program": _by_key("key 2", app, _key_made_by(organization_id, program)),
        "key of an operator": _by_key("key 3", app, _key_made_by(organization_id, Author(operator="ada"))),
        "another of that operator": _by_key("key 4", app, _key_made_by(organization_id, Author(operator="ada"))),
    }
    sent = {name: party.send() for name, party in parties.items()}
    with transaction() as connection:
        members.remove(connection, members.lock(connection, early.member_id), by=None)
    again = visitor(app, organization_id, "approver", "cy.early@EXAMPLE.com")
    del parties["Cy, later removed"]
    parties["Cy, added again"] = _by_member("Cy", again)
    sent["Cy, added again"] = parties["Cy, added again"].send()
    persons = {name: party.person for name, party in parties.items()} | {"Cy, later removed": "Cy"}
    for sender, batch_id in sent.items():
        is_own = {name: party.person == persons[sender] for name, party in parties.items()}
        for name in sorted(parties, key=is_own.__getitem__, reverse=True):  # First those who may not.
            refused = [parties[name].is_refused(batch_id, verb) for verb in ("reject", "approve")[not is_own[name] :]]
            assert refused == [is_own[name]] * len(refused), f"{name} answers what {sender} has sent"
        assert value(f"SELECT status FROM batches WHERE id = {batch_id}") == "queued"
    makers = [key.made_by and key.made_by["type"] for key in books.run(api_keys.find_all, organization_id)]
    assert makers == ["member"] * 3 + ["platform_key"] * 2 + ["operator"] * 2
    for words in ("by Ann Admin", "by a program of the service", "by an operator of the service"):
        assert words in words_of(bo.get("/keys"))


def test_who_approves_sees_every_recipient_on_the_page_and_in_a_file(app: Flask, organization_id: int) -> None:
    ann, cy = (visitor(app, organization_id, role) for role in ("sender", "viewer"))
    lines = "".join(f"user{number}@example.com,1,r{number}\n" for number in range(1, 111))
    path = checked(ann, f"email,amount,reference\n{lines}", label="Spring")
    assert confirm(ann, path).status_code == 303
    batch = f"/batches/{value('SELECT max(id) FROM batches')}"
    page = words_of(cy.get(batch))
    assert "Recipients 1 to 100 of 110" in page
    assert "user100@example.com 1 Spring r100" in page
    assert "user101@example.com" not in page
    assert "user110@example.com 1 Spring r110" in words_of(cy.get(f"{batch}?from=101"))
    rows = rows_of(cy.get(f"{batch}/outcome.csv"))
    assert [row["email"] for row in rows] == [f"user{number}@example.com" for number in range(1, 111)]
    assert rows[109] | {"line": "110", "amount": "1", "label": "Spring", "reference": "r110"} == rows[109]
    assert {row["state"] for row in rows} == {"awaiting_approval"}


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, app: Flask, organization_id: int) -> str:
    """Have a sender send a list of three batches above the limit; return the path of its pages."""
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    return _sent_list(visitor(app, organization_id, "sender"))


_LINES = "".join(f"p{number}@example.com,60,r{number}\n" for number in range(6))


def _sent_list(of: Visitor, *, minutes_ahead: int = 0) -> str:
    path = checked(of, f"email,amount,reference\nbad\n{_LINES}", label="Spring")
    if minutes_ahead:
        assert of.post(f"{path}/cost", of=f"{path}/cost", **_in(minutes_ahead)).status_code == 303
    assert confirm(of, path, again="yes").status_code == 303
    return path


def _in(minutes: int) -> dict[str, str]:
    moment = datetime.now(UTC) + timedelta(minutes=minutes)
    return {"when": "later", "day": f"{moment:%Y-%m-%d}", "clock": f"{moment:%H:%M}"}


def _statuses() -> list[object]:
    return books.values("SELECT status FROM batches ORDER BY id DESC LIMIT 3")[::-1]


def _press(of: Visitor, path: str, what: str, form: dict[str, str]) -> str:
    """Send the form of a list; return what the next page says first."""
    answer = of.client.post(f"{path}/{what}", data=form)
    assert answer.status_code == 303, words_of(answer)
    page = of.get(answer.location)
    page = page if page.status_code == 200 else of.get(page.location)
    return " ".join(re.findall(r'class="said [^"]*" role="status">([^<]*)', page.text))


def _asked(of: Visitor, path: str, **fields: str) -> dict[str, str]:
    return hidden(of.get(path)) | fields


def test_a_list_is_approved_whole_in_its_order_by_one_who_sees_what_its_sender_saw(
    app: Flask, organization_id: int, path: str
) -> None:
    bo = visitor(app, organization_id, "approver")
    page = words_of(bo.get(f"{path}/approval"))
    assert "Points to issue 360 to 6 recipients, in 3 batches Balance now 1,000 Sent by Ann Sender" in page
    assert "Left out 1 line" in page
    assert page.count("awaiting approval Spring 2 120") == 3, "the parts with their points"
    assert "sent points before" not in page
    whole = words_of(bo.get(f"{path}/outcome?from=4"))
    assert "Recipients 4 to 6 of 6 " in whole
    assert [f"p{n}@example.com 60" in whole for n in range(6)] == [False, False, False, True, True, True]
    assert "1 line left out" in whole
    rows = rows_of(bo.get(f"{path}/outcome.csv"))
    assert [row["email"] for row in rows[1:]] == [f"p{n}@example.com" for n in range(6)]
    form = _asked(bo, f"{path}/approval")
    assert _press(bo, path, "approve", form) == "3 batches of this list are approved."
    assert "was done then. Nothing was done again." in _press(bo, path, "approve", form)
    assert books.drain_all(organization_id) == books.values("SELECT unnest(batch_ids) FROM uploads")
    assert [row["state"] for row in rows_of(bo.get(f"{path}/outcome.csv"))[1:]] == ["held"] * 6
    assert words_of(bo.get("/activity")).count(": with 2 more batches of its list") == 3
    again = _sent_list(visitor(app, organization_id, "sender", "again@example.com"))
    page = words_of(bo.get(f"{again}/approval"))
    assert "6 of 6 recipients were sent the same points or the same label within 30 days: 6 the same points" in page
    assert "The sender has ticked: Yes, issue points to them again." in page


def test_who_has_sent_a_list_or_has_seen_another_one_decides_nothing(
    app: Flask, organization_id: int, path: str
) -> None:
    bo, cy = visitor(app, organization_id, "approver"), visitor(app, organization_id, "admin")
    form = _asked(bo, f"{path}/approval")
    second = f"/batches/{value('SELECT batch_ids[2] FROM uploads')}"
    cy.post(f"{second}/reject", of=f"{second}/approval", reason="Not these")
    told = _press(bo, path, "approve", form)
    assert told.startswith("Nothing was changed, because the list is not what the page showed: batch")
    assert re.search(r"batch \d+ is rejected \(\S+ \S+ UTC, Ann Admin: Rejected live batch", told)
    assert _statuses() == ["awaiting_approval", "rejected", "awaiting_approval"]
    assert "Points to issue 240 to 4 recipients, in 2 batches" in words_of(bo.get(f"{path}/approval"))
    assert _press(bo, path, "approve", _asked(bo, f"{path}/approval")) == "2 batches of this list are approved."
    assert _statuses() == ["queued", "rejected", "queued"]
    own = _sent_list(bo)
    assert f"{own}/approve" not in bo.get(f"{own}/approval").text
    assert "Approve or reject the list" not in bo.get(f"{own}/outcome").text
    assert "Whoever has sent a batch" in _press(bo, own, "approve", _asked(bo, f"{own}/cancel"))


def test_what_awaits_an_approval_is_listed_oldest_first_with_points_sender_and_age(
    app: Flask, organization_id: int, path: str
) -> None:
    books.run(organizations.change, organization_id, {"approval_of": "all"})
    books.queue_batch(organization_id, ["x@example.com"], 250, label="By a program")
    books.queue_batch(organization_id, ["x@example.com"], 99)
    bo, cy = visitor(app, organization_id, "approver"), visitor(app, organization_id, "viewer")
    page = words_of(bo.get("/approvals"))
    assert "people.csv Spring Ann Sender 6 in 3 batches 360 less than an hour" in page
    assert page.index("people.csv") < page.index("Batch 4 By a program the API, with key 1 1 250")
    assert page.count("Decide") == 2
    assert "Decide" not in words_of(cy.get("/approvals"))
    assert "Nothing awaits an approval" in words_of(bo.get("/console/sandbox/approvals"))


def test_of_two_who_answer_a_list_at_once_one_decides_on_all_of_it(
    app: Flask, organization_id: int, path: str, many_connections: None
) -> None:
    bo, cy = visitor(app, organization_id, "approver"), visitor(app, organization_id, "admin")
    approves = partial(bo.client.post, f"{path}/approve", data=_asked(bo, f"{path}/approval"))
    rejects = partial(cy.client.post, f"{path}/reject", data=_asked(cy, f"{path}/approval", reason="Wrong"))
    at_once(approves, rejects)
    assert _statuses() in (["queued"] * 3, ["rejected"] * 3)
    told = [words_of(of.get(f"{path}/outcome")) for of in (bo, cy)]
    assert sorted("Nothing was changed" in one for one in told) == [False, True]


def test_a_press_that_dies_between_two_batches_has_done_nothing_and_is_made_again(
    app: Flask, organization_id: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bo, calls = visitor(app, organization_id, "approver"), list[int]()
    form, as_usual = _asked(bo, f"{path}/approval"), approval.approve

    def die_at_the_second(connection: Connection, who: Caller, batch_id: int) -> object:
        calls.append(batch_id)
        if len(calls) == 2:
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        return as_usual(connection, who, batch_id)

    with monkeypatch.context() as patch:
        patch.setattr(approval, "approve", die_at_the_second)
        assert bo.client.post(f"{path}/approve", data=form).status_code == 503
    assert _statuses() == ["awaiting_approval"] * 3
    assert _press(bo, path, "approve", form) == "3 batches of this list are approved."


def test_a_list_is_moved_and_cancelled_whole_and_what_was_issued_meanwhile_is_told(
    app: Flask, organization_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    books.run(organizations.change, organization_id, {"approval_above": None})
    ann = visitor(app, organization_id, "sender")
    path = _sent_list(ann, minutes_ahead=60)
    seen, until = _asked(ann, f"{path}/move"), _in(120)
    assert ann.client.post(f"{path}/move", data=seen | until | {"clock": "25:00"}).status_code == 400
    told = _press(ann, path, "move", seen | until)
    assert told == f"3 batches of this list are scheduled for {until['day']} {until['clock']} UTC."
    assert len(set(books.values("SELECT send_at FROM batches"))) == 1
    stale = _press(ann, path, "move", _asked(ann, f"{path}/cancel") | {"seen": seen["seen"]} | _in(180))
    assert stale.startswith("Nothing was changed, because the list is not what the page showed")
    form = _asked(ann, f"{path}/cancel")
    first = value("SELECT min(id) FROM batches")
    books.execute(f"UPDATE batches SET status = 'queued' WHERE id = {first}")  # As its release does.
    assert books.drain_all(organization_id) == [first]
    told = _press(ann, path, "cancel", form)
    assert told == f"2 batches of this list are cancelled: nobody was debited. Meanwhile batch {first} is issued."
    assert _statuses() == ["issued", "cancelled", "cancelled"]
    assert ann.get(f"{path}/cancel").location == f"{path}/outcome"


def test_who_was_not_debited_of_a_list_in_whatever_way_becomes_one_new_list(
    app: Flask, organization_id: int, path: str
) -> None:
    ann = visitor(app, organization_id, "sender", "ann@example.com")
    bo = visitor(app, organization_id, "approver")
    first, second, third = (f"/batches/{batch}" for batch in books.values("SELECT unnest(batch_ids) FROM uploads"))
    books.issue_now(organization_id, ["x@example.com"], 900)
    bo.post(f"{first}/approve", of=f"{first}/approval")
    books.drain_all(organization_id)
    bo.post(f"{second}/reject", of=f"{second}/approval", reason="Not these")
    assert "Send to the 3 unpaid" in words_of(ann.get(f"{path}/outcome"))
    ann.post(f"{third}/cancel", of=f"{third}/cancel")
    outcome = ann.get(f"{path}/outcome")
    assert "Send to the 5 unpaid" in words_of(outcome)
    assert "Send to the 2 unpaid" in words_of(ann.get(second))
    files = rows_of(ann.get(f"{path}/unpaid.csv"))
    assert [(row["email"], row["label"]) for row in files] == [(f"p{n}@example.com", "Spring") for n in range(1, 6)]
    made = ann.client.post(f"{path}/unpaid", data=hidden(outcome)).location
    page = words_of(ann.get(made))
    assert "Recipients 5 Points in all 300" in page
    assert "Label Spring" in page, "it stays the label of the list"
    assert "sent points before" not in page
