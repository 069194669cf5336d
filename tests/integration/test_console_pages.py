"""The pages of the console for members: what each shows and changes, and that Activity has it."""

import html
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask

from app import api_keys, organizations
from app.errors import InvalidKey, Refused
from app.events.sequencer import number_events
from app.ledger.refill import refill
from app.members import members
from app.members.members import ADMIN, VIEWER
from app.postgres.database import transaction
from app.values import numbers
from app.values.keys import hash_key
from tests.integration import books, races
from tests.integration.visitors import PASSWORD, Visitor, forgery_token, make_member, sign_in, visitor

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def admin(app: Flask) -> Visitor:
    return visitor(app, books.make_organization(), ADMIN)


def _text(page: str) -> str:
    """Return the words of a page, one blank apart."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.partition("<main")[2])).split())


def _activity(one: Visitor) -> str:
    return _text(one.get("/activity").text)


def test_the_overview_shows_each_mode_by_itself(app: Flask) -> None:
    organization_id = books.make_organization(1_000, sandbox_balance=70)
    books.make_users("ann@example.com")
    books.queue_batch(organization_id, ["ann@example.com", "bob@example.com", "eve@example.com"], 200, label="Spring")
    books.queue_batch(organization_id, ["bob@example.com"], 5, sandbox=True, label="Trial")
    books.drain_all(organization_id)
    one = visitor(app, organization_id, VIEWER)
    live = _text(one.get().text)
    assert "Balance 400" in live
    assert "Held 400 for 2 recipients" in live
    assert "Spring" in live
    assert "Trial" not in live
    sandbox = _text(one.get("/console/sandbox").text)
    assert "Balance 65" in sandbox
    assert "Held 5 for 1 recipient " in sandbox
    assert "Spring" not in sandbox
    assert numbers.points(1_000) in live


def test_a_low_live_balance_is_told_and_a_sandbox_one_is_not(app: Flask) -> None:
    one = visitor(app, books.make_organization(100, sandbox_balance=10), VIEWER)
    assert "balance is low" not in one.get().text
    books.execute("UPDATE organizations SET low_balance = 100")
    assert "balance is low" not in one.get().text
    books.execute("UPDATE organizations SET low_balance = 101")
    assert "below 101 points" in one.get().text
    assert "balance is low" not in one.get("/console/sandbox").text


def test_held_points_that_were_taken_back_are_held_no_longer(app: Flask) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.issue_now(organization_id, ["bob@example.com", "eve@example.com"], 20)
    books.reverse_now(organization_id, batch_id=batch_id, amount=15)
    assert "Held 10 for 2 recipients" in _text(visitor(app, organization_id, VIEWER).get().text)


def test_the_page_tells_the_mode_by_a_word_and_by_a_class(admin: Visitor) -> None:
    live, sandbox = admin.get("/batches").text, admin.get("/console/sandbox/batches").text
    assert '<body class="live">' in live
    assert "Real points" in live
    assert '<body class="sandbox">' in sandbox
    assert "nothing here is real" in sandbox
    assert 'href="/console/sandbox/batches"' in live


@pytest.mark.parametrize("mode", ["live", "sandbox"])
def test_a_key_is_shown_once_works_and_is_revoked(admin: Visitor, mode: str) -> None:
    page = admin.post("/keys", of="/keys", mode=mode)
    [key] = re.findall(r"pts_(?:live|dev)_\w{49}", page.text)
    with transaction() as connection:
        caller = api_keys.get_caller(connection, hash_key(key))
    assert (caller.organization.id, caller.sandbox) == (admin.organization_id, mode == "sandbox")
    listed = admin.get("/keys").text
    assert key not in listed
    assert key[:12] in listed
    for said in ("is revoked", "was already revoked"):
        assert admin.post("/keys/1/revoke", of="/keys").location == "/console/live/keys"
        assert said in admin.get("/keys").text
    with transaction() as connection, pytest.raises(InvalidKey):
        api_keys.get_caller(connection, hash_key(key))
    activity = _activity(admin)
    kind = "live" if mode == "live" else "development"
    assert f"Ann Admin Made {kind} key 1" in activity
    assert activity.count("Revoked key 1") == 1


def test_a_key_is_called_by_its_name_wherever_it_is_named(admin: Visitor) -> None:
    made = admin.post("/keys", of="/keys", name=" Till & co ", mode="sandbox")
    assert "Development key 1 (Till & co)" in _text(made.text)
    batch_id = books.queue_batch(admin.organization_id, ["ann@example.com"], 1)
    reversal_id = books.queue_reversal(admin.organization_id, batch_id=batch_id)
    books.execute(
        *books.WITHOUT_GUARDS,
        f"UPDATE batches SET api_key_id = 1 WHERE id = {batch_id}",
        f"UPDATE reversals SET api_key_id = 1 WHERE id = {reversal_id}",
        *books.WITH_GUARDS,
    )
    books.drain_all(admin.organization_id)
    for path in (f"/batches/{batch_id}", f"/reversals/{reversal_id}", "/reversals"):
        assert "the API, with key 1 (Till & co)" in _text(admin.get(path).text), path
    assert admin.post("/keys/1/revoke", of="/keys").status_code == 303
    page = _text(admin.get("/keys").text)
    assert "Key 1 (Till & co) is revoked." in page
    assert re.search(r"Till & co pts_dev_\w+… development", page)
    assert "Made development key 1 (Till & co)" in _activity(admin)
    assert "Revoked key 1 (Till & co)" in _activity(admin)


def test_a_key_has_the_bounds_that_its_form_names(admin: Visitor) -> None:
    fields: dict[str, Any] = {"mode": "live", "scopes": ["send", "read"], "expires_at": "2999-12-31"}
    made = admin.post("/keys", of="/keys", **fields, batch_limit="500", daily_limit="2000")
    [key] = re.findall(r"pts_live_\w{49}", made.text)
    with transaction() as connection:
        bounds = api_keys.get_caller(connection, hash_key(key)).bounds
    assert bounds == (["read", "send"], datetime(3000, 1, 1, tzinfo=UTC), 500, 2_000)
    words = "read, send only; until the end of 2999-12-31 UTC; 500 points a batch; 2,000 points a day"
    for page in (made.text, admin.get("/keys").text):
        assert words in _text(page)
    assert f"Made live key 1: {words}" in _activity(admin)


def test_a_bound_that_cannot_be_is_said_beside_its_field_and_makes_no_key(admin: Visitor) -> None:
    fields: dict[str, Any] = {"mode": "live", "expires_at": "2020-01-31", "batch_limit": "many", "daily_limit": "0"}
    page = admin.post("/keys", of="/keys", **fields)
    assert page.status_code == 400
    said = {
        "expires_at": "Last day must be later than now, but is “2020-01-31”.",
        "batch_limit": "Points of one batch must be a whole number, digits only.",
        "daily_limit": "Points of one day must be between 1 and 9223372036854775807 points, but is 0.",
    }
    for name, sentence in said.items():
        assert re.search(f'id="{name}-wrong-1">{sentence}<', page.text), name
    assert re.search(r'<details class="plain" open>\s*<summary>Bounds', page.text)
    assert "There is no key yet." in page.text


def test_a_bad_name_makes_no_key_and_says_why_beside_the_field(admin: Visitor) -> None:
    page = admin.post("/keys", of="/keys", name="x" * 101, mode="live")
    assert page.status_code == 400
    assert re.search('id="name-wrong-1">[^<]*1 to 100 characters, but has 101', page.text)
    assert "There is no key yet." in page.text


def test_a_new_member_gets_a_link_that_works(app: Flask, admin: Visitor) -> None:
    form = {"email": "bo@example.com", "first_name": "Bo", "last_name": "", "role": "sender"}
    page = admin.post("/members", of="/members", **form)
    [link] = re.findall(r"http://localhost(/console/link/[\w-]{43})<", page.text)
    client = app.test_client()
    chosen = {"csrf_token": forgery_token(client.get(link)), "password": PASSWORD, "again": PASSWORD}
    assert client.post(link, data=chosen).status_code == 303
    assert "Bo" in client.get("/console/live").text
    activity = _activity(admin)
    assert "Ann Admin Added Bo as sender" in activity
    assert "Bo Chose a password" in activity


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("email", "no address", "no @-sign"),
        ("email", "ADMIN-1@example.com", "member has this e-mail address already"),
        ("first_name", " ", "Enter a first name."),
        ("first_name", "x" * 256, "1 to 255 characters"),
        ("last_name", "x" * 256, "1 to 255 characters"),
    ],
)
def test_a_faulty_member_form_adds_nobody(admin: Visitor, field: str, value: str, fault: str) -> None:
    form = {"email": "bo@example.com", "first_name": "Bo", "last_name": "Lee", "role": "sender"} | {field: value}
    page = admin.post("/members", of="/members", **form)
    assert page.status_code == 400
    assert re.search(rf'id="{field}-wrong-1">[^<]*{fault}', page.text)
    with transaction() as connection:
        assert len(members.find_all(connection, admin.organization_id)) == 1


def test_an_address_that_was_removed_can_be_added_anew(app: Flask, admin: Visitor) -> None:
    member_id = make_member(admin.organization_id, "bo@example.com", VIEWER)
    client, _ = sign_in(app, "bo@example.com")
    assert admin.post(f"/members/{member_id}/remove", of="/members").status_code == 303
    assert client.get("/console/live").status_code == 302
    assert sign_in(app, "bo@example.com")[1].status_code == 403
    make_member(admin.organization_id, "bo@example.com", VIEWER)
    assert sign_in(app, "bo@example.com")[1].status_code == 303
    assert "Ann Admin Removed Ann Viewer" in _activity(admin)


def test_a_role_is_changed_and_activity_tells_from_what_to_what(admin: Visitor) -> None:
    member_id = make_member(admin.organization_id, "bo@example.com", VIEWER)
    admin.post(f"/members/{member_id}/role", of="/members", role="sender")
    assert "The role of Ann Viewer is now sender." in admin.get("/members").text
    assert "Ann Admin Changed the role of Ann Viewer from viewer to sender" in _activity(admin)
    assert admin.post(f"/members/{member_id}/role", of="/members", role="owner").status_code == 400


def test_the_only_admin_stays_one(admin: Visitor) -> None:
    page = admin.post(f"/members/{admin.member_id}/role", of="/members", role="viewer")
    assert re.search('id="role-wrong-1">[^<]*only admin', page.text)
    admin.post(f"/members/{admin.member_id}/remove", of="/members")
    assert "only admin" in admin.get("/members").text


@pytest.mark.usefixtures("many_connections")
def test_of_two_admins_who_leave_at_once_one_stays() -> None:
    organization_id = books.make_organization()
    ids = [make_member(organization_id, f"{name}@example.com", ADMIN) for name in ("ann", "bo")]

    def leave(member_id: int) -> str:
        with transaction() as connection:
            member = members.lock(connection, member_id)
            members.change_role(connection, member, VIEWER, by=member_id)
            return "left"

    with races.started() as start, transaction() as connection:
        member = members.lock(connection, ids[0])
        other = start(lambda: leave(ids[1]))
        members.change_role(connection, member, VIEWER, by=ids[0])
        connection.commit()
        with pytest.raises(Refused, match="only admin"):
            other.result(timeout=20)
    with transaction() as connection:
        assert [one.role for one in members.find_all(connection, organization_id)].count(ADMIN) == 1


def test_an_admin_makes_a_new_link_for_a_locked_member(app: Flask, admin: Visitor) -> None:
    member_id = make_member(admin.organization_id, "bo@example.com", VIEWER)
    books.execute(f"UPDATE members SET locked_until = now() + interval '1 h' WHERE id = {member_id}")
    assert "locked" in admin.get(f"/members/{member_id}").text
    page = admin.post(f"/members/{member_id}/link", of="/members")
    [link] = re.findall(r"/console/link/[\w-]{43}", page.text)
    client, new = app.test_client(), "quite another password"
    client.post(link, data={"csrf_token": forgery_token(client.get(link)), "password": new, "again": new})
    assert sign_in(app, "bo@example.com", new)[1].status_code == 303


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


def test_activity_goes_on_where_a_page_ends(admin: Visitor) -> None:
    books.execute(
        "INSERT INTO actions (organization_id, member_id, action, subject_id)"
        " SELECT 1, 1, 'key.revoked', n FROM generate_series(1, 150) n"
    )
    newest = admin.get("/activity").text
    [older] = re.findall(r"/activity\?before=\d+", newest)
    seen = re.findall(r"Revoked key (\d+)<", newest + admin.get(older).text)
    assert seen == [str(number) for number in range(150, 0, -1)]


def test_activity_tells_in_words_what_the_platform_changed(admin: Visitor) -> None:
    with transaction() as connection:
        organizations.change(connection, admin.organization_id, {"approval_above": 5, "held_days": 9})
        refill(connection, admin.organization_id, 12_000, sandbox=False)
    told = _activity(admin)
    assert "Changed the organization: above how many points sends await an approval, for how long points are" in told
    assert "Refilled the live balance: 12,000 points" in told


def test_a_batch_of_a_member_names_it_as_the_sender_in_every_answer(app: Flask) -> None:
    organization_id = books.make_organization(100)
    member_id = make_member(organization_id, "ann@example.com", "sender")
    batch_id = books.queue_batch(organization_id, ["bo@example.com"], 10)
    books.execute(
        *books.WITHOUT_GUARDS,
        f"UPDATE batches SET api_key_id = NULL, member_id = {member_id} WHERE id = {batch_id}",
        *books.WITH_GUARDS,
    )
    books.drain_all(organization_id)
    books.issue_now(organization_id, ["eve@example.com"], 10)
    client = app.test_client()
    headers = {"Authorization": f"Bearer {books.make_live_key(organization_id)}"}

    def data(path: str) -> Any:
        answer = client.get(path, headers=headers)
        assert answer.json is not None
        return answer.json["data"]

    ann = {"id": member_id, "first_name": "Ann", "last_name": "Sender"}
    shown = data(f"/v1/batches/{batch_id}")
    assert (shown["sender"], shown["api_key_id"]) == (ann, None)
    assert [one["sender"] for one in shown["transactions"]] == [ann]
    assert [one["sender"] for one in data("/v1/batches")["batches"]] == [None, ann]
    for query in ("", "?email=bo@example.com"):
        senders = [one["sender"] for one in data(f"/v1/transactions{query}")["transactions"]]
        assert senders == ([None, ann] if not query else [ann])
    transaction_id = shown["transactions"][0]["id"]
    assert data(f"/v1/transactions/{transaction_id}")["sender"] == ann
    with transaction() as connection:
        number_events(connection, organization_id)
    batches = [event["data"]["batch"] for event in data("/v1/events?types=batch.*")["events"]]
    assert [(batch["sender"], batch["batch_id"]) for batch in batches] == [(ann, batch_id), (None, batch_id + 1)]


def test_times_are_read_and_days_are_asked_for_in_the_zone_of_the_member(app: Flask) -> None:
    organization_id = books.make_organization(100)
    one, other = (visitor(app, organization_id, VIEWER, f"{name}@example.com") for name in ("ann", "bo"))
    batch_id = books.issue_now(organization_id, ["eve@example.com"], 10)
    books.execute(*books.WITHOUT_GUARDS, f"UPDATE batches SET created_at = '2026-06-30 22:30Z' WHERE id = {batch_id}")
    assert "2026-06-30 22:30 UTC" in _text(one.get("/batches").text)
    assert one.post("/account/zone", of="/account", zone="Europe/Paris").status_code == 303
    assert "2026-07-01 00:30 UTC+2" in _text(one.get("/batches").text)
    assert "Times are those of Europe/Paris." in _text(one.get("/batches").text)
    assert "2026-06-30 22:30 UTC" in _text(other.get("/batches").text)
    of_day = "/batches?created_from={0}&created_to={0}"
    found = {day: f"/batches/{batch_id}" in one.get(of_day.format(day)).text for day in ("2026-06-30", "2026-07-01")}
    assert list(found.values()) == [False, True]
    assert "Accepted from must be a day of the calendar" in one.get("/batches?created_from=2026-13-01").text
    assert one.post("/account/zone", of="/account", zone="Europe/Nowhere").status_code == 400
    assert one.post("/account/zone", of="/account", zone="Europe/Paris").status_code == 303
    assert _activity(one).count("Chose the time zone Europe/Paris") == 1
