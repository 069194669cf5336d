"""Signing in at the console: links good once, passwords, the lock, sessions that end."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyotp
import pytest
from cryptography.fernet import Fernet
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import organizations
from app.cli import demo
from app.console.views.sign_in import WRONG
from app.local.datadir import DataDir
from app.members import links, members, second_factor, sessions, tries
from app.postgres.database import transaction
from app.values import passwords
from app.values.key_hashes import new_key
from app.web.application import create_app
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.console_forms import read
from tests.integration.visitors import PASSWORD, Visitor, forgery_token, make_member, sign_in, visitor, words_of
from tests.ports import free_port

pytestmark = pytest.mark.usefixtures("database")


def _link(organization_id: int, email: str = "ann@example.com") -> str:
    _, token = books.run(links.add, organization_id, email, "Ann", "Smith", role="viewer", by=None)
    return f"/console/link/{token}"


def _choose(client: FlaskClient, link: str, password: str = PASSWORD, again: str | None = None) -> TestResponse:
    form = {"csrf_token": forgery_token(client.get(link)), "password": password, "again": again or password}
    return client.post(link, data=form)


def _is_in(client: FlaskClient) -> bool:
    return client.get("/console/live").status_code == 200


def test_a_link_is_good_for_one_password_and_to_look_at_it_does_not_use_it_up(app: Flask) -> None:
    link = _link(books.make_organization())
    assert [app.test_client().get(link).status_code for _ in range(3)] == [200, 200, 200]
    first, second = app.test_client(), app.test_client()
    token = forgery_token(second.get(link))
    assert _choose(first, link).status_code == 303
    assert _is_in(first)
    late = second.post(link, data={"csrf_token": token, "password": "another password", "again": "another password"})
    assert late.status_code == 404
    assert second.get(link).status_code == 404
    assert not _is_in(second)


def test_a_link_is_over_after_a_day_and_by_a_newer_one(app: Flask) -> None:
    organization_id = books.make_organization()
    old = _link(organization_id)
    with transaction() as connection:
        token = links.make_link(connection, members.lock(connection, 1), by=None)
    client = app.test_client()
    assert client.get(old).status_code == 404
    assert client.get(f"/console/link/{token}").status_code == 200
    books.execute("UPDATE members SET link_expires_at = link_expires_at - interval '24 h'")
    assert client.get(f"/console/link/{token}").status_code == 404


def test_a_bad_password_is_refused_beside_its_field(app: Flask) -> None:
    client, link = app.test_client(), _link(books.make_organization())
    for password, again, fault in (
        ("short", "short", "12 to 256 characters"),
        ("x" * 257, "x" * 257, "12 to 256"),
        (PASSWORD, "other", "not the same"),
        ("password1234", "password1234", "easy to guess"),
        ("qwertyuiop123", "qwertyuiop123", "easy to guess"),
        ("Ann@example.com!", "Ann@example.com!", "easy to guess"),
        ("annsmithannsmith", "annsmithannsmith", "easy to guess"),
    ):
        page = _choose(client, link, password, again)
        assert fault in page.text, password
        assert 'aria-invalid="true"' in page.text
    assert not _is_in(client)


def test_wrong_unknown_removed_and_locked_are_answered_with_the_same_words(app: Flask) -> None:
    organization_id = books.make_organization()
    for email in ("ann@example.com", "locked@example.com", "gone@example.com"):
        make_member(organization_id, email, "viewer")
    books.execute("UPDATE members SET locked_until = now() + interval '1 h' WHERE id = 2")
    with transaction() as connection:
        members.remove(connection, members.lock(connection, 3), by=None)
    tries = [
        sign_in(app, "ann@example.com", "a wrong password"),
        sign_in(app, "locked@example.com"),
        sign_in(app, "gone@example.com"),
        sign_in(app, "nobody@example.com"),
        sign_in(app, "no address"),
    ]
    assert {answer.status_code for _, answer in tries} == {403}
    assert all(WRONG in answer.text for _, answer in tries)
    assert not any(_is_in(client) for client, _ in tries)


def test_the_work_is_the_same_whether_there_is_such_a_member(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    make_member(books.make_organization(), "ann@example.com", "viewer")
    for password in (PASSWORD, "quite another password"):
        _choose(app.test_client(), _link(books.make_organization(), "twice@example.com"), password)
    passwords.right_ones("", [])  # The first time it makes what it compares with.
    looked_at: list[str] = []

    def hash_password(password: str, like: str | None = None) -> str:
        looked_at.append(_real(password, like))
        return looked_at[-1]

    _real = passwords.hash_password
    monkeypatch.setattr(passwords, "hash_password", hash_password)
    tried = ("ann@example.com", "twice@example.com", "nobody@example.com", "no address")
    for email in tried:
        sign_in(app, email, "a wrong password")
    assert len(looked_at) == len(tried)
    assert {stored.rpartition("$")[0].rpartition("$")[0] for stored in looked_at} == {"$argon2id$v=19$m=19456,t=2,p=1"}


def _give_wrong_passwords(app: Flask, times: int) -> None:
    for _ in range(times):
        sign_in(app, "ann@example.com", "a wrong password")


def test_ten_wrong_passwords_lock_the_account_for_a_quarter_of_an_hour(app: Flask) -> None:
    make_member(books.make_organization(), "ann@example.com", "viewer")
    _give_wrong_passwords(app, 10)
    for earlier, status in (("0 s", 403), ("14 min 50 s", 403), ("10 s", 303)):
        books.execute(f"UPDATE members SET locked_until = locked_until - interval '{earlier}'")
        assert sign_in(app, "ann@example.com")[1].status_code == status


def test_a_right_password_or_a_quarter_of_an_hour_begins_the_count_of_wrong_ones_anew(app: Flask) -> None:
    make_member(books.make_organization(), "ann@example.com", "viewer")
    for _ in range(2):
        _give_wrong_passwords(app, 9)
        assert sign_in(app, "ann@example.com")[1].status_code == 303, "the tenth try may be the right one"
    _give_wrong_passwords(app, 9)
    books.execute("UPDATE members SET wrong_since = wrong_since - interval '15 min'")
    _give_wrong_passwords(app, 1)
    assert sign_in(app, "ann@example.com")[1].status_code == 303


@pytest.mark.usefixtures("many_connections")
def test_of_many_tries_at_once_ten_are_looked_at() -> None:
    make_member(books.make_organization(), "ann@example.com", "viewer")

    def count_try(_: int) -> Any:
        return books.run(tries.count_try, "ann@example.com")

    with ThreadPoolExecutor(16) as threads:
        outcomes = list(threads.map(count_try, range(32)))
    assert sum(len(outcome) for outcome in outcomes) == 10


def test_one_password_opens_each_organization_where_the_person_has_it(app: Flask) -> None:
    ids = [books.make_organization(name=name) for name in ("Acme", "Bakery", "Cinema")]
    other = "quite another password"
    for organization_id, password in zip(ids, (PASSWORD, PASSWORD, other), strict=True):
        client = app.test_client()
        _choose(client, _link(organization_id), password)
        assert "Go to" not in client.get("/console/live/account").text, "a password that was just chosen is no try"

    client, answer = sign_in(app, "ann@example.com")
    assert answer.status_code == 303
    copied = client.get_cookie("points_console", path="/console")
    account = client.get("/console/live/account")
    assert "Acme" in account.text
    assert re.findall(r"Go to (\w+)", account.text) == ["Bakery"]
    for member_id, status in ((3, 404), (2, 303)):
        path = f"/console/live/account/organizations/{member_id}"
        assert client.post(path, data={"csrf_token": forgery_token(account)}).status_code == status
    account = client.get("/console/live/account")
    assert re.findall(r"Go to (\w+)", account.text) == ["Acme"]
    thief = app.test_client()
    assert copied is not None
    thief.set_cookie("points_console", copied.value, path="/console")
    assert not _is_in(thief)
    with transaction() as connection:
        members.end_sessions(connection, members.lock(connection, 1), by=None)
    assert "Go to" not in client.get("/console/live/account").text, "who is signed out at Acme does not go on there"
    client.post("/console/live/sign-out", data={"csrf_token": forgery_token(account)})
    form = {"email": "ann@example.com", "password": PASSWORD}
    client.post("/console/sign-in", data=form | {"csrf_token": forgery_token(client.get("/console/sign-in"))})
    assert "Bakery" in client.get("/console/live").text, "the organization of this browser"


def test_a_password_that_one_organization_gave_is_a_counted_guess_at_the_others(app: Flask) -> None:
    for password in (PASSWORD, "quite another password"):
        _choose(app.test_client(), _link(books.make_organization()), password)
    for _ in range(10):
        assert sign_in(app, "ann@example.com", "quite another password")[1].status_code == 303
    assert sign_in(app, "ann@example.com")[1].status_code == 403
    assert sign_in(app, "ann@example.com", "quite another password")[1].status_code == 303
    details = books.values("SELECT organization_id::text FROM actions WHERE action = 'member.wrong_password'")
    assert details == ["1", "2"], "it is told when it locks an account, and when it is right nowhere"


def test_a_session_is_over_after_twelve_hours_and_then_deleted_by_the_next(app: Flask) -> None:
    one = visitor(app, books.make_organization(), "viewer")
    assert one.get().status_code == 200
    books.execute("UPDATE member_sessions SET expires_at = expires_at - interval '11 h 59 min'")
    assert one.get().status_code == 200
    books.execute("UPDATE member_sessions SET expires_at = expires_at - interval '1 min'")
    assert one.get().status_code == 302
    sign_in(app, one.email)
    with transaction() as connection:
        assert len(sessions.find_all(connection, one.member_id)) == 1
        assert connection.exec_driver_sql("SELECT count(*) FROM member_sessions").scalar() == 1


def test_a_session_is_over_after_an_hour_without_a_request_and_is_noted_once_a_minute(app: Flask) -> None:
    one = visitor(app, books.make_organization(), "viewer")

    def move(by: str) -> list[str]:
        books.execute(f"UPDATE member_sessions SET seen_at = seen_at - interval '{by}'")
        return books.values("SELECT seen_at::text FROM member_sessions")

    for by, status, is_noted in (
        ("50 s", 200, False),
        ("10 s", 200, True),
        ("59 min 50 s", 200, True),
        ("1 h", 302, False),
    ):
        before = move(by)
        assert one.get().status_code == status, by
        assert (books.values("SELECT seen_at::text FROM member_sessions") != before) == is_noted, by
    with transaction() as connection:
        assert sessions.find_all(connection, one.member_id) == []


def test_the_last_sign_in_stands_on_the_account_and_among_the_members(app: Flask) -> None:
    admin = visitor(app, books.make_organization(), "admin")
    bob = make_member(admin.organization_id, "bob@example.com", "viewer")
    assert "never signed in" in words_of(admin.get(f"/members/{bob}"))
    books.execute("UPDATE members SET last_signed_in_at = '2026-01-02 03:04:05Z' WHERE role = 'admin'")
    assert "The last sign-in was 2026-01-02 03:04 UTC." in words_of(admin.get("/account"))
    assert re.search("Ann Admin .* 2026-01-02 03:04 UTC .* never", words_of(admin.get("/members")))
    sign_in(app, "bob@example.com")
    assert books.values("SELECT last_signed_in_at > now() - interval '1 min' FROM members ORDER BY id") == [False, True]


def test_signing_out_ends_the_session_also_for_a_copy_of_the_cookie(app: Flask) -> None:
    one = visitor(app, books.make_organization(), "viewer")
    copied = one.client.get_cookie("points_console", path="/console")
    assert copied is not None
    assert one.post("/sign-out").status_code == 303
    thief = app.test_client()
    thief.set_cookie("points_console", copied.value, path="/console")
    assert not _is_in(thief)
    assert not _is_in(one.client)


def test_another_password_is_chosen_by_who_knows_the_old_one_and_ends_every_other_session(app: Flask) -> None:
    one = visitor(app, books.make_organization(), "viewer")
    elsewhere, _ = sign_in(app, one.email)
    new = "quite another password"
    for current, status in (("a wrong password", 400), (PASSWORD, 303)):
        assert _is_in(elsewhere)
        changed = one.post("/account/password", of="/account", current=current, password=new, again=new)
        assert changed.status_code == status
    assert _is_in(one.client)
    assert not _is_in(elsewhere)
    assert sign_in(app, one.email)[1].status_code == 403
    assert sign_in(app, one.email, new)[1].status_code == 303


@pytest.fixture
def encrypting(monkeypatch: pytest.MonkeyPatch) -> Flask:
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    forget_everything()
    return create_app()


_FACTOR = "/account/second-factor"


def _secret_on(page: TestResponse) -> str:
    [secret] = re.findall(r'<code class="long">([A-Z2-7 ]+)</code>', page.text)
    return str(secret).replace(" ", "")


def _turn_on(one: Visitor) -> tuple[str, list[str]]:
    """Turn on a second factor; return its secret and the recovery codes. The code used is then as if of long ago."""
    page = one.get(_FACTOR)
    secret, fields = (
        _secret_on(page),
        dict(re.findall(r'name="(sealed|csrf_token|form_id)"[^>]* value="([^"]+)"', page.text)),
    )
    done = one.client.post(f"/console/live{_FACTOR}", data=fields | {"code": _code(secret)})
    assert done.status_code == 200, done.text
    books.execute("UPDATE second_factors SET used_step = 0")
    return secret, re.findall(r"<code>([a-z2-7-]{19})</code>", done.text)


def _code(secret: str) -> str:
    return pyotp.TOTP(secret).now()


def _wrong(secret: str) -> str:
    return f"{(int(_code(secret)) + 500_000) % 1_000_000:06}"


def _give(client: FlaskClient, code: str) -> int:
    page = client.get("/console/sign-in/code")
    if page.status_code != 200:
        return page.status_code
    form = {"csrf_token": forgery_token(page), "code": code}
    return client.post("/console/sign-in/code", data=form).status_code


def test_a_second_factor_is_asked_for_and_each_code_is_good_once(encrypting: Flask) -> None:
    one = visitor(encrypting, books.make_organization(), "viewer")
    page = one.get(_FACTOR)
    sealed = re.findall('name="sealed"[^>]* value="([^"]+)"', page.text)[0]
    for code, sent_back in ((_wrong(_secret_on(page)), sealed), (_code(_secret_on(page)), f"{sealed}x")):
        refused = one.post(_FACTOR, of=_FACTOR, code=code, sealed=sent_back)
        assert refused.status_code == 400
    secret, codes = _turn_on(one)
    assert len(set(codes)) == 10
    stored = " ".join(books.values("SELECT second_factors::text FROM second_factors"))
    assert not any(each.replace("-", "") in stored for each in (secret, *codes))

    client, answer = sign_in(encrypting, one.email)
    assert (answer.status_code, "Enter a code" in answer.text, _is_in(client)) == (200, True, False)
    with client.session_transaction(path="/console/live") as cookie:
        cookie["token"] = cookie["awaits_code"]
    assert not _is_in(client), "what awaits a code opens nothing"
    used = _code(secret)
    for given, status in ((_wrong(secret), 403), ("", 200), (used, 303)):
        assert _give(client, given) == status
    assert _is_in(client)
    for given, status in ((used, 403), (codes[0].upper(), 303)):
        client, _ = sign_in(encrypting, one.email)
        assert _give(client, given) == status
        assert _is_in(client) == (status == 303)
    assert _give(sign_in(encrypting, one.email)[0], codes[0]) == 403
    assert "9 recovery codes left" in words_of(one.get(_FACTOR))
    assert one.post(_FACTOR, of=_FACTOR, code=codes[0]).status_code == 400
    assert one.post(_FACTOR, of=_FACTOR, code=codes[1]).status_code == 303
    assert sign_in(encrypting, one.email)[1].status_code == 303
    assert books.values("SELECT id FROM second_factors") == []
    activity = words_of(one.get("/activity"))
    for words in ("Ann Viewer Turned on a second factor", "Somebody Gave a wrong code for Ann Viewer"):
        assert words in activity


def test_wrong_codes_lock_the_account_like_wrong_passwords_and_no_password_begins_the_count_anew(
    encrypting: Flask,
) -> None:
    one = visitor(encrypting, books.make_organization(), "viewer")
    secret, _ = _turn_on(one)
    for _ in range(5):
        client, _ = sign_in(encrypting, one.email)
        assert [_give(client, _wrong(secret)) for _ in range(2)] == [403, 403]
    assert _give(client, _code(secret)) == 403
    assert sign_in(encrypting, one.email)[1].status_code == 403
    books.execute("UPDATE members SET locked_until = locked_until - interval '15 min'")
    assert _give(sign_in(encrypting, one.email)[0], _code(secret)) == 303
    assert books.values("SELECT wrong_passwords FROM members") == [0]


def test_neither_a_link_nor_time_nor_another_session_is_a_way_around_the_code(encrypting: Flask) -> None:
    one = visitor(encrypting, books.make_organization(), "viewer")
    secret, _ = _turn_on(one)
    with transaction() as connection:
        token = links.make_link(connection, members.lock(connection, one.member_id), by=None)
    client = encrypting.test_client()
    assert _choose(client, f"/console/link/{token}").location == "/console/sign-in/code"
    assert not _is_in(client)
    books.execute("UPDATE member_sessions SET expires_at = expires_at - interval '10 min' WHERE awaits_code")
    assert _give(client, _code(secret)) == 303, "to the sign-in, as it took too long"
    assert not _is_in(client)
    client, _ = sign_in(encrypting, one.email)
    with transaction() as connection:
        members.end_sessions(connection, members.lock(connection, one.member_id), by=None)
    _give(client, _code(secret))
    assert not _is_in(client)


def test_what_was_typed_into_a_form_of_a_session_that_is_over_outlasts_the_code_too(encrypting: Flask) -> None:
    one = visitor(encrypting, books.make_organization(), "admin")
    secret, _ = _turn_on(one)
    [form] = [form for form in read("", one.get("/members"))[1] if form.action.endswith("/members")]
    books.execute("UPDATE member_sessions SET seen_at = seen_at - interval '1 h'")
    page = one.client.post(form.action, data=form.fields | {"first_name": "Kept"})
    for fields in ({"email": one.email, "password": PASSWORD}, {"code": _wrong(secret)}, {"code": _code(secret)}):
        [asked] = read("", page)[1]
        page = one.client.post(asked.action, data=asked.fields | fields)
    [again] = read("", page)[1]
    assert (again.action, again.fields["first_name"]) == (form.action, "Kept")


def test_an_organization_may_require_it_and_an_admin_may_take_off_a_lost_one(encrypting: Flask) -> None:
    admin = visitor(encrypting, books.make_organization(), "admin")
    bob = visitor(encrypting, admin.organization_id, "sender")
    _turn_on(admin)
    books.run(organizations.change, admin.organization_id, {"requires_second_factor": True})
    assert admin.get("/settings").status_code == 200
    for _ in range(2):
        for path in ("", "/account", "/batches.csv"):
            assert bob.get(path).location == f"/console/live{_FACTOR}"
        assert bob.post("/send", of=_FACTOR, pasted="x@example.com", amount="1").location == f"/console/live{_FACTOR}"
        assert "requires a second factor" in bob.get(_FACTOR).text
        _turn_on(bob)
        assert bob.get().status_code == 200
        path = f"/members/{bob.member_id}"
        assert admin.post(f"{path}/reset-second-factor", of=path).status_code == 303
    assert "Ann Admin Turned off the second factor of Ann Sender" in words_of(admin.get("/activity"))


def test_a_person_has_one_factor_where_one_password_opens_and_no_admin_lifts_it_elsewhere(encrypting: Flask) -> None:
    ids = [books.make_organization(name=name) for name in ("Acme", "Bakery")]
    for organization_id in ids:
        _choose(encrypting.test_client(), _link(organization_id))
    client, _ = sign_in(encrypting, "ann@example.com")
    ann = Visitor(member_id=1, organization_id=ids[0], email="ann@example.com", client=client)
    secret, _ = _turn_on(ann)
    shared = "SELECT count(*) FROM members WHERE second_factor_id = 1"
    assert books.values(shared) == [2]
    assert "Go to Bakery" in ann.get("/account").text
    with transaction() as connection:
        second_factor.take_off(connection, members.lock(connection, 2), by=None, everywhere=False)
    client, answer = sign_in(encrypting, ann.email)
    assert answer.status_code == 200
    assert _give(client, _code(secret)) == 303
    assert books.values(shared) == [2], "who gave its code has it at both again"
    with transaction() as connection:
        second_factor.take_off(connection, members.lock(connection, 2), by=None, everywhere=True)
    assert sign_in(encrypting, ann.email)[1].status_code == 303


def test_without_a_key_of_the_service_no_factor_is_turned_on_and_a_recovery_code_still_opens(
    encrypting: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = visitor(encrypting, books.make_organization(), "viewer")
    secret, codes = _turn_on(one)
    monkeypatch.delenv("POINTS_SECRETS_KEY")
    forget_everything()
    client, _ = sign_in(encrypting, one.email)
    assert _give(client, _code(secret)) == 503
    assert _give(client, codes[0]) == 303
    other = visitor(encrypting, one.organization_id, "viewer", "other@example.com")
    page = words_of(other.get(_FACTOR))
    assert "It cannot be turned on." in page
    assert "POINTS_SECRETS_KEY" in page


def test_the_cookie_is_for_the_console_alone_and_for_no_script(app: Flask) -> None:
    client = app.test_client()
    plain = client.get("/console/sign-in").headers["Set-Cookie"]
    assert {"HttpOnly", "Path=/console", "SameSite=Lax"} <= set(plain.split("; "))
    assert "Secure" not in plain
    for named, is_https in (("https", True), ("https,http", True), ("HTTPS, http", True), ("http, https", False)):
        behind_tls = app.test_client().get("/console/sign-in", headers={"X-Forwarded-Proto": named})
        assert ("Secure" in behind_tls.headers["Set-Cookie"].split("; ")) == is_https, named


_FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
_CHROME = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36"


def test_a_session_and_a_wrong_password_name_browser_and_address(app: Flask) -> None:
    organization_id = books.make_organization()
    make_member(organization_id, "ann@example.com", "viewer")
    client = app.test_client()

    def enter(password: str, browser: str, forwarded: str, direct: str) -> TestResponse:
        form = {"email": "ann@example.com", "password": password}
        form["csrf_token"] = forgery_token(client.get("/console/sign-in"))
        headers = {"User-Agent": browser, "X-Forwarded-For": forwarded}
        return client.post("/console/sign-in", data=form, headers=headers, environ_base={"REMOTE_ADDR": direct})

    for _ in range(9):
        enter("a wrong password", _CHROME, "198.51.100.9", "8.8.8.8")
    assert enter(PASSWORD, _FIREFOX, "10.0.0.1, 203.0.113.5", "127.0.0.1").status_code == 303
    account = client.get("/console/live/account").text
    assert "Firefox on Linux" in account
    assert "203.0.113.5" in account
    activity = client.get("/console/live/activity").text
    assert activity.count("Somebody</td>") == 9
    assert activity.count("Gave a wrong password for Ann Viewer: Chrome on Android, 8.8.8.8") == 9
    assert "Signed in: Firefox on Linux, 203.0.113.5" in activity
    for _ in range(10):
        enter("a wrong password", "x", "not an address", "127.0.0.1")
    locked = "another browser, 127.0.0.1; the account is locked for 15 minutes"
    assert locked in client.get("/console/live/activity").text


def test_style_and_script_are_kept_by_their_version(app: Flask) -> None:
    books.make_organization()
    client = app.test_client()
    paths = re.findall(r'"(/console/static/[^"]+)"', client.get("/console/sign-in").text)
    assert len(paths) >= 2
    for path in paths:
        assert client.get(path).headers["Cache-Control"] == "public, max-age=31536000, immutable"
        for other in (path.partition("?")[0], f"{path}0"):
            assert client.get(other).headers["Cache-Control"] == "no-store, private"


def test_processes_read_each_others_cookies_and_a_made_up_one_is_nothing() -> None:
    one = visitor(create_app(), books.make_organization(), "viewer")
    cookie = one.client.get_cookie("points_console", path="/console")
    assert cookie is not None
    another_process = create_app().test_client()
    another_process.set_cookie("points_console", cookie.value, path="/console")
    assert _is_in(another_process)
    stranger = create_app().test_client()
    # Not its last character: of that some bits mean nothing.
    made_up = cookie.value[:9] + ("A" if cookie.value[9] != "A" else "B") + cookie.value[10:]
    stranger.set_cookie("points_console", made_up, path="/console")
    assert not _is_in(stranger)


def test_signing_in_leads_to_the_page_asked_for_and_to_no_other_site(app: Flask) -> None:
    make_member(books.make_organization(), "ann@example.com", "viewer")
    own = "/console/sandbox/activity?before=7"
    for wanted in (own, "https://evil.example/", "//evil.example/", "/console/live/..//evil", "/docs"):
        client = app.test_client()
        page = client.get("/console/sign-in", query_string={"next": wanted})
        form = {"email": "ann@example.com", "password": PASSWORD, "csrf_token": forgery_token(page)}
        answer = client.post("/console/sign-in", query_string={"next": wanted}, data=form)
        assert answer.location == (own if wanted == own else "/console/live"), wanted


def test_no_password_link_or_session_is_stored_as_it_is(app: Flask) -> None:
    link = _link(books.make_organization())
    stored = " ".join(books.values("SELECT members::text FROM members"))
    assert link.rpartition("/")[2] not in stored
    client = app.test_client()
    _choose(client, link)
    with client.session_transaction(path="/console/live") as cookie:
        token = cookie["token"]
    with transaction() as connection:
        rows = connection.exec_driver_sql(
            "SELECT members::text FROM members UNION ALL SELECT member_sessions::text FROM member_sessions"
        ).scalars()
        stored = " ".join(rows)
    assert token not in stored
    assert PASSWORD not in stored


def test_each_start_of_points_up_shows_a_link_for_the_demo_until_its_password_is_chosen(
    app: Flask, tmp_path: Path
) -> None:
    def start() -> list[str]:
        _, lines = demo.prepare(DataDir(tmp_path), f"http://127.0.0.1:{free_port()}")
        return re.findall(r"/console/link/\S+", "\n".join(lines))

    [first], [second] = start(), start()
    assert app.test_client().get(first).status_code == 404
    client = app.test_client()
    assert _choose(client, second).status_code == 303
    assert (_is_in(client), start()) == (True, [])


def test_points_up_on_another_database_shows_neither_keys_nor_a_link_of_the_demo_in_its_folder(tmp_path: Path) -> None:
    organization_id = books.make_organization()
    _link(organization_id, "admin@example.com")
    keys = {"organization_id": str(organization_id), "live": new_key(sandbox=False).text}
    DataDir(tmp_path).write("demo.json", keys)
    assert demo.prepare(DataDir(tmp_path), f"http://127.0.0.1:{free_port()}") == (None, [])
