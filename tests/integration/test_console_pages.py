"""The pages of the console for members: what each shows and changes, and that Activity has it."""

import csv
import html
import re
from datetime import UTC, date, datetime, timedelta
from io import BytesIO, StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from python_calamine import CalamineWorkbook
from werkzeug.test import TestResponse

from app import api_keys, organizations
from app.errors import InvalidKey, Refused
from app.events.sequencer import number_events
from app.members import members
from app.members.members import ADMIN, SENDER, VIEWER
from app.platform import keys as platform_keys
from app.postgres.database import transaction
from app.scope import Author, Scope
from app.values.key_hashes import hash_key
from app.web.application import create_app
from app.webhooks import actions as webhook_actions
from app.webhooks.webhook import webhooks
from tests.conftest import forget_everything
from tests.deadline import TIMEOUT_S
from tests.integration import books, races
from tests.integration.console_lists import hidden, sent
from tests.integration.visitors import PASSWORD, Visitor, forgery_token, make_member, sign_in, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")

_URL = "https://192.0.2.7/hook"
ANN, BOB = "ann@example.com", "bob@example.com"


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Visitor:
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    monkeypatch.setenv("POINTS_WEBHOOK_ALLOW", "192.0.2.0/24")
    forget_everything()
    return visitor(create_app(), books.make_organization(100), ADMIN)


def _activity(one: Visitor) -> str:
    return words_of(one.get("/activity"))


def test_the_overview_tells_balance_held_and_what_was_issued_by_whom_in_each_mode(app: Flask, ann: Visitor) -> None:
    sent(ann, "email\na@example.com\nb@example.com\n", amount="100", label="Spring")
    books.issue_now(ann.organization_id, ["c@example.com"], 300)
    books.issue_now(ann.organization_id, ["c@example.com"], 77, sandbox=True)
    page, sandbox = ann.get(), words_of(ann.get("/console/sandbox"))
    today = datetime.now(UTC).date()
    for words in (
        *("Balance 500 lasts 30 days", "Held 500 for 3 recipients", "Issued this month 500 last month 0", "Spring"),
        *(f"{today} 500 {today - timedelta(days=1)} 0", "Programs, by the API 300 Ann Sender 200"),
    ):
        assert words in words_of(page), words
    assert re.search(r"Refills When Points Balance after it \S+ \S+ UTC 1,000 1,000", words_of(page))
    for words in ("Balance 423", "Held 77 for 1 recipient ", "Issued this month 77", "Programs, by the API 77"):
        assert words in sandbox, words
    assert not re.search("Spring|Ann Sender 200", sandbox)
    for link in ("send", "held", "batches?status=scheduled", f"batches?created_from={today.replace(day=1)}"):
        [answer] = {ann.get(to).status_code for to in re.findall(rf'href="([^"]+/{re.escape(link)})"', page.text)}
        assert answer == 200
    books.execute("UPDATE organizations SET low_balance = 500")
    assert "balance is low" not in ann.get().text
    books.execute("UPDATE organizations SET low_balance = 501")
    assert "below 501 points" in ann.get().text
    assert "balance is low" not in ann.get("/console/sandbox").text


def test_each_page_tells_points_and_beside_them_of_how_many_recipients(app: Flask) -> None:
    books.make_users(ANN)
    organization_id = books.make_organization(100)
    batch_id = books.issue_now(organization_id, [ANN, "bo@example.com", "cy@example.com"], 40)
    one = visitor(app, organization_id, "sender")
    pages: list[tuple[str, tuple[str, ...]]] = [
        (
            f"/batches/{batch_id}",
            ("issued 80 to 2 recipients", "Credited 40 to 1", "Held 40 for 1", "Not debited 40 for 1 recipient:"),
        ),
        (
            f"/batches/{batch_id}/take-back",
            ("come back 80", "From users 40 1 user loses", "Held 40 for 1 recipient:", "1 recipient skipped"),
        ),
    ]
    for path, tiles in pages:
        assert all(tile in words_of(one.get(path)) for tile in tiles), path
    reversal_id = books.reverse_now(organization_id, batch_id=batch_id, amount=15)
    assert "taken back 30 from 2 recipients" in words_of(one.get(f"/reversals/{reversal_id}"))
    batch = words_of(one.get(f"/batches/{batch_id}"))
    for tile in ("issued 80 to 2", "Credited 25 to 1", "Held 25 for 1 recipient", "Taken back 30 from 2 recipients"):
        assert tile in batch
    assert "Held 25 for 1 recipient without" in words_of(one.get())


def test_a_long_batch_is_shown_in_pages(ann: Visitor) -> None:
    batch_id = books.issue_now(ann.organization_id, [f"p{i}@example.com" for i in range(250)], 1)
    assert "Transactions 1 to 100 of 250" in words_of(ann.get(f"/batches/{batch_id}"))
    last = ann.get(f"/batches/{batch_id}?from=201")
    assert "p249@example.com" in last.text
    assert ">Next<" not in last.text


def test_the_sandbox_is_moved_refilled_and_reset_and_each_of_its_pages_tells_its_time(admin: Visitor) -> None:
    page, moved = "/console/sandbox/sandbox", "Its clock is moved"

    def send(what: str, **typed: str) -> str:
        answer = admin.post(f"{page}/{what}", of=page, **typed)
        return words_of(answer if answer.status_code != 303 else admin.get(page))

    assert moved not in admin.get(page).text
    day = f"{datetime.now(UTC) + timedelta(days=40):%Y-%m-%d}"
    assert f"is set to {day} 09:30 UTC" in send("clock", day=day, clock="09:30")
    assert "forwards only" in send("clock", day=day, clock="09:29")
    assert "forwards only" in send("clock", day="2999-01-01", clock="09:30")
    for path in ("", "/batches", "/sandbox"):
        assert f"{moved}: it is {day} 09:3" in words_of(admin.get(f"/console/sandbox{path}"))
    assert moved not in admin.get().text
    assert "5 points were put" in send("refill", amount="5")
    assert "must be a whole number" in send("refill", amount="-5")
    assert re.search("The balance is [0-9,]+ points? again", send("reset"))
    assert moved not in admin.get(page).text
    for said in (f"Set the clock of the sandbox: to {day} 09:30", "sandbox balance: 5 points", "Reset the sandbox"):
        assert said in _activity(admin), said
    assert admin.get("/sandbox").status_code == 404


@pytest.mark.parametrize("mode", ["live", "sandbox"])
def test_a_key_is_shown_once_works_is_called_by_its_name_and_is_revoked(admin: Visitor, mode: str) -> None:
    page = admin.post("/keys", of="/keys", name=" Till & co ", mode=mode)
    [key] = re.findall(r"pts_(?:live|dev)_\w{49}", page.text)
    caller = books.run(api_keys.get_caller, hash_key(key))
    assert (caller.organization.id, caller.sandbox) == (admin.organization_id, mode == "sandbox")
    listed = admin.get("/keys").text
    assert key not in listed
    assert key[:12] in listed
    for said in (r"Key 1 \(Till & co\) is revoked\.", "was already revoked.*Ann Admin: Revoked key 1"):
        assert admin.post("/keys/1/revoke", of="/keys").location == "/console/live/keys"
        assert re.search(said, words_of(admin.get("/keys")))
    with transaction() as connection, pytest.raises(InvalidKey):
        api_keys.get_caller(connection, hash_key(key))
    assert f"Ann Admin Made {'live' if mode == 'live' else 'development'} key 1 (Till & co)" in _activity(admin)
    assert _activity(admin).count("Revoked key 1 (Till & co)") == 1


def test_a_key_has_the_bounds_that_its_form_names(admin: Visitor) -> None:
    fields: dict[str, Any] = {"mode": "live", "scopes": ["send", "read"], "expires_at": "2999-12-31"}
    made = admin.post("/keys", of="/keys", **fields, batch_limit="500", daily_limit="2000")
    [key] = re.findall(r"pts_live_\w{49}", made.text)
    with transaction() as connection:
        bounds = api_keys.get_caller(connection, hash_key(key)).bounds
    assert bounds == (["read", "send"], datetime(3000, 1, 1, tzinfo=UTC), 500, 2_000)
    words = "read, send only; until the end of 2999-12-31 UTC; 500 points a batch; 2,000 points a day"
    for page in (made, admin.get("/keys"), admin.get("/activity")):
        assert words in words_of(page)


def test_an_address_that_was_removed_can_be_added_anew(app: Flask, admin: Visitor) -> None:
    member_id = make_member(admin.organization_id, "bo@example.com", VIEWER)
    client, _ = sign_in(app, "bo@example.com")
    assert admin.post(f"/members/{member_id}/remove", of="/members").status_code == 303
    assert client.get("/console/live").status_code == 302
    assert sign_in(app, "bo@example.com")[1].status_code == 403
    make_member(admin.organization_id, "bo@example.com", VIEWER)
    assert sign_in(app, "bo@example.com")[1].status_code == 303
    assert "Ann Admin Removed Ann Viewer" in _activity(admin)


def test_what_a_removed_member_leaves_behind_is_named_first_and_ends_if_the_admin_says_so(
    app: Flask, admin: Visitor
) -> None:
    books.execute("UPDATE organizations SET approval_above = 4")
    outcomes = [("bo", {}, "awaiting_approval", False), ("cy", {"cancel": "yes", "revoke": "yes"}, "cancelled", True)]
    for name, ends, status, is_revoked in outcomes:
        leaver = visitor(app, admin.organization_id, SENDER, f"{name}@example.com")
        sent(leaver, f"email\n{name}@example.com\n", amount="5")
        with transaction(by=Author(member_id=leaver.member_id)) as connection:
            key_id, _ = api_keys.create(connection, admin.organization_id, sandbox=False, name=name)
        path = f"/members/{leaver.member_id}"
        page = admin.get(path)
        [batch_id] = books.values(f"SELECT id FROM batches WHERE member_id = {leaver.member_id}")
        assert f"Live batch {batch_id} : 5 points, awaiting approval" in words_of(page)
        assert f"Live key {key_id} ({name}), never used" in words_of(page)
        seen = hidden(page)["seen"]
        for text in ("", f"{seen} 77"):
            admin.post(f"{path}/remove", of=path, seen=text, **ends)
            assert "nothing was done" in admin.get(path).text
        assert admin.post(f"{path}/remove", of=path, seen=seen, **ends).location.endswith("/members")
        assert books.values("SELECT status FROM batches WHERE id = %s", (batch_id,)) == [status]
        revoked = books.values("SELECT revoked_at IS NOT NULL FROM api_keys WHERE id = %s", (key_id,))
        assert revoked == [is_revoked]
    assert f"Ann Admin Cancelled live batch {batch_id}" in _activity(admin)
    chosen = admin.get(f"/batches?sender={leaver.member_id}").text
    assert f'<option selected value="{leaver.member_id}">Ann Sender (removed)</option>' in chosen
    assert f"/batches/{batch_id}" in chosen


_SETTINGS = {"approval_above": "none", "approval_of": "console", "held_days": "none", "low_balance": "none"}
_SETTINGS |= {"requires_second_factor": "no"}


def _change_of(admin: Visitor, **new: str) -> TestResponse:
    return admin.client.get("/console/live/settings/change", query_string=_SETTINGS | new)


def test_settings_are_changed_by_who_knows_the_password_after_the_page_has_said_what_comes_of_it(
    app: Flask, admin: Visitor
) -> None:
    books.execute("UPDATE organizations SET approval_above = 4")
    sender = visitor(app, admin.organization_id, SENDER)
    for amount in ("5", "50"):
        sent(sender, f"email\n{amount}@example.com\n", amount=amount)
    books.queue_batch(admin.organization_id, ["x@example.com"], 21, send_at=datetime.now(UTC) + timedelta(days=2))
    new = {"approval_above": "20", "approval_of": "all", "held_days": "90", "low_balance": "101"}
    page = _change_of(admin, **new)
    for words in (
        *("Approval limit 4 → 20", "Whose sends await an approval members → members and programs"),
        *("Days that points are held none → 90", "Low balance none → 101", "100 points: low by the new figure."),
        "What awaits approval still needs it: 2 batches, 1 within the new limit.",
        "What is scheduled needs no other approval: 1 batch, 1 above the new limit.",
    ):
        assert words in words_of(page), words

    def send(of: TestResponse, **fields: str) -> TestResponse:
        return admin.client.post("/console/live/settings/change", data=_SETTINGS | new | hidden(of) | fields)

    wrong = send(page, current="a wrong password")
    assert (wrong.status_code, "not your password" in wrong.text) == (400, True)
    for meanwhile in (
        lambda: sent(sender, "email\nlate@example.com\n", amount="7"),
        lambda: books.run(organizations.change, admin.organization_id, {"held_days": 7}),
    ):
        meanwhile()
        changed = send(page, current=PASSWORD)
        assert (changed.status_code, "nothing was done" in changed.text) == (409, True)
        page = changed
    assert send(page, current=PASSWORD, seen="").status_code == 409
    assert send(page, current=PASSWORD).status_code == 303
    with transaction() as connection:
        now = organizations.get_whole(connection, admin.organization_id)
    assert (now.approval_above, now.approval_of, now.held_days, now.low_balance) == (20, "all", 90, 101)
    assert words_of(admin.get("/settings")).count("Ann Admin changed it 20") == 4
    done = "days that points are held from 7 to 90, low balance from none to 101, approval limit from 4 to 20"
    of_whom = "whose sends await an approval from members to members and programs"
    assert f"Ann Admin Changed the organization: {done}, {of_whom}" in _activity(admin)
    assert _change_of(admin, **new).status_code == 303, "nothing is left to change"


@pytest.mark.parametrize("text", ["", " ", "-1", "1.5", "1e9", "never", "9" * 19, "9" * 20])
def test_a_setting_that_is_empty_or_wrong_is_named_and_never_means_none(admin: Visitor, text: str) -> None:
    for name in _SETTINGS:
        answer = _change_of(admin, **{name: text})
        assert f'id="{name}-wrong-1"' in answer.text
        assert answer.text.count('class="wrong"') == 1


def test_a_role_is_changed_and_the_only_admin_stays_one(admin: Visitor) -> None:
    member_id = make_member(admin.organization_id, "bo@example.com", VIEWER)
    role = {"of": "/members", "seen": VIEWER}
    admin.post(f"/members/{member_id}/role", **role, role="sender")
    assert "Ann Admin Changed the role of Ann Viewer from viewer to sender" in _activity(admin)
    stale = admin.post(f"/members/{member_id}/role", **role, role="approver")
    assert re.search("changed since you looked.*Ann Admin: Changed the role of Ann Viewer from", words_of(stale))
    assert admin.post(f"/members/{member_id}/role", of="/members", role="owner").status_code == 400
    page = admin.post(f"/members/{admin.member_id}/role", of="/members", seen=ADMIN, role="viewer")
    assert re.search('id="role-wrong-1">[^<]*only admin', page.text)
    admin.post(f"/members/{admin.member_id}/remove", of="/members")
    assert "only admin" in admin.get("/members").text
    admin.post(f"/members/{member_id}/remove", of="/members")
    gone = admin.post(f"/members/{member_id}/role", **role, role="sender")
    assert gone.status_code == 404
    assert re.search(f"There is no member {member_id}.*Ann Admin: Removed Ann Viewer", words_of(gone))


def test_what_is_too_large_is_told_with_the_limit(admin: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_BODY_BYTES_MAX", "20480")
    forget_everything()
    refused = admin.post("/send", of="/send", pasted="ann@example.com\n" * 2_000)
    assert refused.status_code == 413
    assert "it may have up to 20 kB" in words_of(refused)
    assert "up to 20 kB" in words_of(admin.get("/send"))


@pytest.mark.usefixtures("many_connections")
def test_of_two_admins_who_leave_at_once_one_stays() -> None:
    organization_id = books.make_organization()
    ids = [make_member(organization_id, f"{name}@example.com", ADMIN) for name in ("ann", "bo")]

    def leave(member_id: int) -> None:
        with transaction() as connection:
            members.change_role(connection, members.lock(connection, member_id), VIEWER, by=member_id)

    with races.started() as start, transaction() as connection:
        member = members.lock(connection, ids[0])
        other = start(lambda: leave(ids[1]))
        members.change_role(connection, member, VIEWER, by=ids[0])
        connection.commit()
        with pytest.raises(Refused, match="only admin"):
            other.result(timeout=TIMEOUT_S)
    with transaction() as connection:
        assert [one.role for one in members.find_all(connection, organization_id)].count(ADMIN) == 1


def test_an_admin_makes_a_new_link_for_a_locked_member(app: Flask, admin: Visitor) -> None:
    member_id = make_member(admin.organization_id, "bo@example.com", VIEWER)
    books.execute(f"UPDATE members SET locked_until = now() + interval '1 h' WHERE id = {member_id}")
    assert "locked" in admin.get(f"/members/{member_id}").text
    [link] = re.findall(r"/console/link/[\w-]{43}", admin.post(f"/members/{member_id}/link", of="/members").text)
    client, new = app.test_client(), "quite another password"
    client.post(link, data={"csrf_token": forgery_token(client.get(link)), "password": new, "again": new})
    assert sign_in(app, "bo@example.com", new)[1].status_code == 303


def test_a_link_begins_where_people_reach_the_console(
    app: Flask, admin: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = books.run(platform_keys.create, "Billing")
    headers = {"Authorization": f"Bearer {key}", "Host": "evil.example.com"}
    path = f"/v1/platform/organizations/{admin.organization_id}/members/{admin.member_id}/link"

    refused = app.test_client().post(path, headers=headers)
    assert (refused.status_code, refused.get_json()["additional_data"]["code"]) == (409, "no_public_url")
    assert "POINTS_PUBLIC_URL" in refused.get_json()["errors"]["link"][0]
    assert books.values("SELECT link_hash FROM members") == [None]
    page = f"/members/{admin.member_id}/link"
    assert "http://localhost/console/link/" in admin.post(page, of="/members").text
    monkeypatch.setenv("POINTS_PUBLIC_URL", "https://points.example.com/")
    forget_everything()
    assert "https://points.example.com/console/link/" in admin.post(page, of="/members").text
    made = app.test_client().post(path, headers=headers)
    assert made.get_json()["data"]["link"].startswith("https://points.example.com/console/link/")


def test_sessions_are_ended_by_their_member_and_by_an_admin(app: Flask, admin: Visitor) -> None:
    bo = visitor(app, admin.organization_id, VIEWER)
    elsewhere, _ = sign_in(app, bo.email)
    [session_id] = re.findall(r"sessions/(\d+)/end", bo.get("/account").text)
    bo.post(f"/account/sessions/{session_id}/end", of="/account")
    assert elsewhere.get("/console/live").status_code == 302
    assert bo.get().status_code == 200
    admin.post(f"/members/{bo.member_id}/end-sessions", of="/members")
    assert bo.get().status_code == 302
    assert "Signed Ann Viewer out everywhere" in _activity(admin)


def test_activity_is_found_by_who_and_what_and_downloaded(admin: Visitor) -> None:
    admin.post("/keys", of="/keys", name="Till", mode="live")
    _make_webhook(admin)
    books.execute("INSERT INTO actions (organization_id, operator, action) VALUES (1, 'ada', 'organization.suspended')")
    key, webhook, operator = "Made live key 1 (Till)", "Made live webhook 1", "Suspended the organization"
    for query, matches in {
        "about=key": {key},
        "about=webhook": {webhook},
        f"by=member:{admin.member_id}": {"Chose a password", "Signed in", key, webhook},
        "by=operator": {operator},
        "by=operator&about=key": set(),
        "created_to=2001-01-01": set(),
    }.items():
        page, file = words_of(admin.get(f"/activity?{query}")), admin.get(f"/activity.csv?{query}").text
        lines = list(csv.DictReader(StringIO(file.removeprefix("\ufeff"))))
        assert {line["what"] for line in lines} == matches, query
        assert all((said in page) == (said in matches) for said in (key, webhook, operator)), query
    assert lines == []
    assert admin.get("/activity.csv?about=nothing").status_code == 400


def test_activity_goes_on_where_a_page_ends(admin: Visitor) -> None:
    books.execute(
        "INSERT INTO actions (organization_id, member_id, action, subject_id)"
        " SELECT 1, 1, 'key.revoked', n FROM generate_series(1, 150) n"
    )
    older, seen = ["/activity"], list[str]()
    while older:
        page = admin.get(older[0]).text
        seen += re.findall(r"Revoked key (\d+)<", page)
        older = re.findall(r"/activity\?cursor=[\w-]+", page)
    assert seen == [str(number) for number in range(150, 0, -1)]


def test_a_batch_of_a_member_names_it_as_the_sender_in_every_answer(app: Flask, ann: Visitor) -> None:
    sent(ann, "email\nbo@example.com\n", amount="10")
    organization_id, sender = ann.organization_id, {"id": ann.member_id, "first_name": "Ann", "last_name": "Sender"}
    books.issue_now(organization_id, ["eve@example.com"], 10)
    books.run(number_events, organization_id)
    headers = {"Authorization": f"Bearer {books.make_live_key(organization_id)}"}

    def data(path: str) -> Any:
        answer = app.test_client().get(path, headers=headers)
        assert answer.json is not None
        return answer.json["data"]

    newest_first: list[tuple[str, Any]] = [
        ("/v1/batches", lambda found: [one["sender"] for one in found["batches"]]),
        ("/v1/transactions", lambda found: [one["sender"] for one in found["transactions"]]),
        (
            "/v1/events?types=batch.*",
            lambda found: [event["data"]["batch"]["sender"] for event in reversed(found["events"])],
        ),
    ]
    for path, senders in newest_first:
        assert senders(data(path)) == [None, sender], path
    [of_member] = data("/v1/transactions?email=bo@example.com")["transactions"]
    batch = data("/v1/batches?email=bo@example.com")["batches"][0]
    shown = data(f"/v1/batches/{batch['batch_id']}")
    assert (shown["sender"], shown["api_key_id"], shown["transactions"][0]["sender"]) == (sender, None, sender)
    assert data(f"/v1/transactions/{of_member['id']}")["sender"] == of_member["sender"] == sender


def test_times_are_read_and_days_are_asked_for_in_the_zone_of_the_member(app: Flask) -> None:
    organization_id = books.make_organization(100)
    one, other = (visitor(app, organization_id, VIEWER, f"{name}@example.com") for name in ("ann", "bo"))
    batch_id = books.issue_now(organization_id, ["eve@example.com"], 10)
    books.rewrite(f"UPDATE batches SET created_at = '2026-06-30 22:30Z' WHERE id = {batch_id}")
    for _ in range(2):
        assert one.post("/account/zone", of="/account", zone="Europe/Paris").status_code == 303
    assert one.post("/account/zone", of="/account", zone="Europe/Nowhere").status_code == 400
    assert _activity(one).count("Chose the time zone Europe/Paris") == 1
    assert "2026-07-01 00:30 UTC+2" in words_of(one.get("/batches"))
    assert "2026-06-30 22:30 UTC" in words_of(other.get("/batches"))
    of_day = "/batches?created_from={0}&created_to={0}"
    found = {day: f"/batches/{batch_id}" in one.get(of_day.format(day)).text for day in ("2026-06-30", "2026-07-01")}
    assert list(found.values()) == [False, True]


def test_a_reversal_is_found_with_its_reason_from_the_batch_the_list_and_activity(ann: Visitor) -> None:
    batch_id = books.issue_now(ann.organization_id, ["a@example.com", "b@example.com"], 10, hold_days=5)
    some = books.reverse_now(ann.organization_id, transaction_ids=[batch_id * 131_072], amount=4)
    page = f"/console/live/batches/{batch_id}/take-back"
    assert ann.client.post(page, data=hidden(ann.get(page)) | {"reason": "Wrong & list"}).status_code == 303
    books.drain_all(ann.organization_id)
    batch = ann.get(f"/batches/{batch_id}")
    [whole] = re.findall(r"/reversals/(\d+)", ann.get("/activity").text)
    assert re.findall(r"/reversals/(\d+)", batch.text) == [whole, str(some)]
    assert re.search(rf"{whole} \S+ \S+ UTC Ann Sender Wrong & list {batch_id} done 16", words_of(batch))
    assert re.search(
        rf"{some} \S+ \S+ UTC the API, with key \d+ a mistake {batch_id} , 1 chosen recipient, 4 points",
        words_of(batch),
    )
    assert ", and all of it was taken back since" in words_of(batch)
    for path in ("", "/batches"):
        assert "issued all taken back" in words_of(ann.get(path))
    of_some = words_of(ann.get(f"/reversals/{some}"))
    assert f"Batch {batch_id} , 1 chosen recipient, 4 points from each" in of_some
    assert "Why not a@example.com 10 4 –" in of_some
    queued = books.queue_reversal(ann.organization_id, transaction_ids=[batch_id * 131_072 + 1])
    assert f"Batch {batch_id} , 1 chosen recipient" in words_of(of_queued := ann.get(f"/reversals/{queued}"))
    assert "b@example.com" in of_queued.text
    books.drain_all(ann.organization_id)
    assert f"Took points back by live reversal {whole}: Wrong & list" in _activity(ann)
    assert re.findall(r"/reversals/(\d+)", ann.get("/reversals").text) == [str(queued), whole, str(some)]
    assert "/reversals/" not in re.sub('href="[^"]*/reversals"', "", ann.get("/console/sandbox/reversals").text)
    other = books.issue_now(ann.organization_id, ["c@example.com", "d@example.com"], 20, hold_days=5)
    in_part = books.issue_now(ann.organization_id, ["e@example.com", "f@example.com"], 50, hold_days=5)
    books.reverse_now(ann.organization_id, transaction_ids=[in_part * 131_072], amount=20)
    books.let_days_pass(6)
    books.return_unclaimed()
    for path in (f"/batches/{other}", "/reversals"):
        assert "the service: held too long" in words_of(ann.get(path))
    returned = words_of(ann.get(f"/batches/{other}"))
    assert "Returned 40 held too long for 2 recipients" in returned
    assert not re.search("Taken back [0-9]", returned)
    for page in (returned, words_of(ann.get("/transactions"))):
        assert "c@example.com returned 20 20 gone back" in page
    sums = "Taken back 20 from 1 recipient Returned 80 held too long for 2 recipients"
    assert sums in words_of(ann.get(f"/batches/{in_part}"))


def test_a_viewer_sees_by_month_what_moved_the_balance_and_what_it_was_for(app: Flask) -> None:
    organization_id = books.make_organization(1_000, sandbox_balance=77)
    books.queue_batch(organization_id, [ANN, BOB], 100, label="Spring <sale>")
    batch_id = books.issue_now(organization_id, [ANN], 30)
    books.issue_now(organization_id, [ANN], 10_000)
    books.reverse_now(organization_id, batch_id=batch_id, amount=10)
    one = visitor(app, organization_id, "viewer")
    words = words_of(one.get("/statement"))
    for tile in (
        *("Refilled 1,000", "Debited 230 3 batches, 4 transactions, of which 1 unpaid", "balance 10 10 taken back"),
        *("Balance at the beginning 0", "Balance at the end 780", "Spring <sale> 200 without a label 30"),
    ):
        assert tile in words, tile
    assert "Balance at the end 77" in words_of(one.get("/console/sandbox/statement"))
    books.execute("UPDATE organizations SET created_at = '2025-12-31 12:00Z'")
    page = one.get("/statement?month=2026-01")
    assert re.findall(r'statement\?month=([0-9-]+)" rel="(\w+)"', page.text) == [
        ("2025-12", "prev"),
        ("2026-02", "next"),
    ]
    assert 'rel="next"' not in one.get("/statement").text
    assert 'rel="prev"' not in one.get("/statement?month=2025-12").text
    assert one.get("/statement?month=0001-01").status_code == 200
    for wrong in ("2999-01", "2026-13", "0000-01", "2026-3", "x", ""):
        assert one.get(f"/statement?month={wrong}").status_code == 400


def test_a_month_is_downloaded_as_csv_and_for_excel(app: Flask) -> None:
    organization_id = books.make_organization(1_000)
    books.issue_now(organization_id, [ANN, BOB], 100)
    one = visitor(app, organization_id, "viewer")
    [month] = re.findall(r"<h1>Statement of ([0-9-]+)</h1>", one.get("/statement").text)
    text = one.get(f"/statement.csv?month={month}")
    assert f"statement-{month}-live.csv" in text.headers["Content-Disposition"]
    lines = list(csv.DictReader(StringIO(text.text.removeprefix("\ufeff"))))
    assert lines[0]["date"] == f"{month}-01"
    assert sum(int(line["debited"]) for line in lines) == 200
    assert lines[-1]["closing_balance"] == "800"
    assert {date.fromisoformat(line["date"]).month for line in lines} == {int(month[-2:])}
    book = CalamineWorkbook.from_filelike(BytesIO(one.get(f"/statement.xlsx?month={month}").data))
    rows = book.get_sheet_by_index(0).to_python()
    assert rows[0] == list(lines[0])
    in_excel = [[str(cell).removesuffix(".0") for cell in row] for row in rows[1:]]
    assert in_excel == [list(line.values()) for line in lines][: len(in_excel)]


def _make_webhook(admin: Visitor) -> str:
    """Make a webhook; return its secret."""
    page = admin.post("/webhooks", of="/webhooks", url=_URL, types="batch.*, ping", description="Shop")
    [secret] = re.findall(r"whsec_[\w+/=]+", html.unescape(page.text))
    return str(secret)


def test_a_webhook_is_of_the_mode_of_the_page_and_its_secret_is_shown_once(
    admin: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = _make_webhook(admin)
    listed, page = admin.get("/webhooks").text, admin.get("/webhooks/1").text
    assert "batch.*, ping" in listed
    assert _URL in page
    assert secret not in listed + page
    assert "Shop" not in admin.get("/console/sandbox/webhooks").text
    assert admin.get("/console/sandbox/webhooks/1").status_code == 404
    assert "Made live webhook 1" in _activity(admin)
    monkeypatch.delenv("POINTS_SECRETS_KEY")
    forget_everything()
    refused = admin.post("/webhooks", of="/webhooks", url=_URL, types="*", description="")
    assert refused.status_code == 400
    assert "POINTS_SECRETS_KEY" in refused.text


def test_a_webhook_that_two_disable_at_once_is_disabled_by_one_event(admin: Visitor) -> None:
    _make_webhook(admin)
    with races.started() as start, transaction() as first:
        found = webhooks.get(first, 1, Scope(admin.organization_id, sandbox=False), lock=True)
        webhook_actions.disable(first, found)
        second = start(lambda: admin.post("/webhooks/1/disable", of="/webhooks/1"))
        races.until_waiting()
        first.commit()
        assert second.result().location == "/console/live/webhooks/1"
    with transaction() as connection:
        number_events(connection, admin.organization_id)
        types = connection.exec_driver_sql("SELECT type FROM events").scalars().all()
    assert types.count("webhook.disabled") == 1


def test_a_webhook_is_changed_field_by_field_and_a_page_that_is_stale_says_by_whom(admin: Visitor) -> None:
    _make_webhook(admin)
    as_shown = {"url": _URL, "types": "batch.*, ping", "description": "Shop"}
    other = visitor(admin.client.application, admin.organization_id, ADMIN, "bo@example.com")
    stale = _seen_of_webhook(admin)

    def change(by: Visitor, seen: str, **typed: str) -> str:
        answer = by.post("/webhooks/1/change", of="/webhooks/1", seen=seen, **as_shown | typed)
        return words_of(answer if answer.status_code != 303 else by.get("/webhooks/1"))

    assert "The webhook is changed." in change(other, stale, types="batch.awaiting approval, key.*")
    assert "Events batch.awaiting_approval, key.*" in words_of(admin.get("/webhooks/1"))
    refused = change(admin, stale, description="Till")
    assert re.search("was changed since you looked.*Ann Admin: Live webhook 1: changed its types", refused)
    assert "Till" not in admin.get("/webhooks/1").text
    for wrong, says in {
        "types": ("batch.isued", "did you mean batch.issued"),
        "url": ("https://10.0.0.1/", "public"),
    }.items():
        assert says[1] in change(admin, _seen_of_webhook(admin), **{wrong: says[0]}), wrong
    admin.post("/webhooks/1/disable", of="/webhooks/1")
    other.post("/webhooks/1/ping", of="/webhooks/1")
    assert re.search("nothing is sent.*Ann Admin: Live webhook 1: disabled", words_of(other.get("/webhooks/1")))


def _seen_of_webhook(one: Visitor) -> str:
    return hidden(one.get("/webhooks/1"))["seen"]


def test_a_ping_tells_what_the_receiver_answered(admin: Visitor) -> None:
    _make_webhook(admin)
    page = admin.post("/webhooks/1/ping", of="/webhooks/1").location
    assert "The ping is on its way." in words_of(admin.get(page))
    books.run(number_events, admin.organization_id)
    [sequence] = books.values("SELECT sequence FROM events WHERE type = 'ping'")
    attempt = "INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, attempt, ms, status, error)"
    for answered, says in {
        "500, 'refused'": "The receiver did not take the ping: it answered 500.",
        "NULL, 'timeout'": "The receiver did not take the ping: no answer within 15 seconds.",
        "204, NULL": "The receiver took the ping: it answered 204 after 12 ms.",
    }.items():
        books.execute(f"{attempt} VALUES (1, {sequence}, 'evt_1', 'ping', 1, 12, {answered})")
        assert says in words_of(admin.get(page)), answered
    books.execute(
        f"{attempt} VALUES (1, {sequence} + 1, 'evt_2', 'batch.issued', 1, 12, 503, 'refused')",
        "UPDATE webhooks SET failures = 1, failing_since = now(), retry_at = now()",
    )
    page = admin.post("/webhooks/1/ping", of="/webhooks/1").location
    says = "The ping waits, because the receiver has not taken an earlier event: it answered 503."
    assert says in words_of(admin.get(page))


def test_a_stuck_webhook_shows_its_attempts_and_skips_and_replays(admin: Visitor) -> None:
    _make_webhook(admin)
    admin.post("/webhooks/1/skip", of="/webhooks/1")
    assert "not stuck" in admin.get("/webhooks/1").text
    assert "Live webhook" not in _activity(admin)
    books.issue_now(admin.organization_id, ["bo@example.com"], 10)
    with transaction() as connection:
        number_events(connection, admin.organization_id)
        [(sequence, event_id)] = connection.exec_driver_sql(
            "SELECT sequence, id FROM events WHERE type = 'batch.issued'"
        ).all()
    books.execute(
        f"UPDATE webhooks SET position = {sequence - 1}, failures = 2, failing_since = now(), retry_at = now()",
        "INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, attempt, status, ms, error)"
        f" VALUES (1, {sequence}, 'evt_{event_id}', 'batch.issued', 2, 500, 12, 'refused')",
    )
    page = admin.get("/webhooks/1").text
    assert "2 attempts of the next event" in page
    assert re.search(r'data-label="Outcome">\s*it answered 500', page)
    admin.post("/webhooks/1/skip", of="/webhooks/1")
    assert f"event {sequence} of" in admin.get("/webhooks/1").text
    admin.post("/webhooks/1/replay", of="/webhooks/1", from_sequence=str(sequence))
    assert f"event {sequence - 1} of" in admin.get("/webhooks/1").text
    assert f"replayed from event {sequence}" in _activity(admin)
