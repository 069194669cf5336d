"""What guards the console: forged forms, roles, strangers, other organizations; and that errors are pages."""

import re
from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet
from flask import Flask

from app import api_keys
from app.members.members import ADMIN, APPROVER, ROLES, SENDER, VIEWER
from app.postgres.database import transaction
from app.scope import Scope
from app.values.ids import POSITIONS
from app.web.application import create_app
from app.webhooks.webhook import webhooks
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.console_lists import sent
from tests.integration.visitors import Visitor, forgery_token, visitor

pytestmark = pytest.mark.usefixtures("database", "broker")

_FORM = {"mode": "live", "role": "admin", "email": "x@example.com", "first_name": "X", "last_name": "Y"}
_FORM |= {"url": "https://example.com/hook", "types": "*", "from_sequence": "1", "form_id": "f" * 24}
_FORM |= {"reason": "x", "seen": "0" * 64, "again": "yes", "amount": "3", "day": "2999-01-01", "clock": "09:30"}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Flask:
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    forget_everything()
    return create_app()


def _paths(app: Flask, *methods: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each page and form for members: the method, the path of the first row, and whether it names a row."""
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith("console."):
            path = rule.rule.replace("<int:transaction_id>", str(POSITIONS)).replace("<int:reversal_id>", "2")
            path = re.sub(r"<[^>]+>", "1", re.sub(r"<any\((\w+)[^>]*>", r"\1", path))
            for method in methods:
                if method in (rule.methods or ()):
                    yield method, path, bool(rule.arguments - {"mode", "action", *(rule.defaults or ())})


def _least_role(path: str) -> str:
    """Return the least of the roles that may open a page or send a form, as docs/console.md has it."""
    [_, _, _, *words] = path.split("/")
    first, last = (words[0], words[-1]) if words else ("", "")
    if first in ("keys", "members", "settings", "webhooks", "sandbox"):
        return ADMIN
    if last in ("approval", "approve", "reject"):
        return APPROVER
    if first == "send":
        return VIEWER if last in ("outcome", "outcome.csv", "outcome.xlsx", "unpaid.csv") else SENDER
    return SENDER if last in ("cancel", "move", "take-back", "unpaid", "hold") else VIEWER


def _everything() -> list[object]:
    """Return all that forms of this page can change, but the last sight of a session."""
    sessions = books.values("SELECT to_jsonb(member_sessions) - 'seen_at' FROM member_sessions ORDER BY 1")
    tables = ("members", "actions", "api_keys", "batches", "reversals", "organizations", "webhooks")
    others = [books.values(f"SELECT {table}::text FROM {table} ORDER BY 1") for table in (*tables, "uploads")]
    return [sessions, *others]


def test_a_form_without_its_token_or_with_another_sessions_changes_nothing(app: Flask) -> None:
    organization_id = books.make_organization()
    admin = visitor(app, organization_id, ADMIN)
    attacker = visitor(app, organization_id, ADMIN, "attacker@example.com")
    theirs, own, before = forgery_token(attacker.get()), forgery_token(admin.get()), _everything()
    for _, path, _ in _paths(app, "POST"):
        for token in (None, "", "x", theirs, f"{theirs[:-1]}x", f"{theirs}\n"):
            form = _FORM | ({} if token is None else {"csrf_token": token})
            answer = admin.client.post(path, data=form)
            assert answer.status_code == 400, (path, token)
            assert "Nothing was changed" in answer.text
        assert admin.client.post(f"{path}?csrf_token={own}", data=_FORM).status_code == 400
        assert admin.client.post(path, json=_FORM | {"csrf_token": own}).status_code == 400
        assert admin.client.get(path, query_string=_FORM | {"csrf_token": own}).status_code in (200, 404, 405)
    assert _everything() == before


@pytest.mark.parametrize("role", ROLES)
def test_a_member_opens_and_does_what_the_role_allows_and_nothing_else(app: Flask, role: str) -> None:
    one = visitor(app, books.make_organization(), role)
    token, before = forgery_token(one.get()), _everything()
    for method, path, _ in _paths(app, "GET", "POST"):
        is_allowed = ROLES.index(_least_role(path)) <= ROLES.index(role)
        if method == "GET" or not is_allowed:
            answer = one.client.open(path, method=method, data=_FORM | {"csrf_token": token})
            assert (answer.status_code == 403) != is_allowed, path
            assert ("Your role" in answer.get_data(as_text=False).decode(errors="replace")) != is_allowed, path
    assert _everything() == before


def test_a_role_counts_from_the_next_page_on(app: Flask) -> None:
    one = visitor(app, books.make_organization(), VIEWER)
    assert one.get("/members").status_code == 403
    books.execute("UPDATE members SET role = 'admin'")
    assert one.get("/members").status_code == 200


def test_a_stranger_gets_to_the_sign_in_and_no_further(app: Flask) -> None:
    books.make_organization()
    client = app.test_client()
    token = forgery_token(client.get("/console/sign-in"))
    before = _everything()
    for method, path, _ in _paths(app, "GET", "POST"):
        answer = client.open(path, method=method, data=_FORM | {"csrf_token": token})
        assert answer.status_code in (302, 303), path
        assert answer.location.startswith("/console/sign-in")
    assert _everything() == before


def _victim(app: Flask) -> Visitor:
    """Make an organization with a row of each kind, and return its admin."""
    victim = visitor(app, books.make_organization(4_321, name="Umbrella"), ADMIN, "victim@example.com")
    theirs = victim.organization_id
    with transaction() as connection:
        api_keys.create(connection, theirs, sandbox=False)
        hook = {"url": "https://victim.example.com", "types": ["*"], "description": "Theirs", "secret": "none"}
        webhooks.add(connection, Scope(theirs, sandbox=False), **hook, position=0)
    books.queue_batch(theirs, ["secret@example.com"], 21, label="Theirs", hold_days=3)
    books.drain_all(theirs)
    books.reverse_now(theirs, batch_id=1, amount=1)
    sent(victim, "email\nsecret@example.com\nbad\n", amount="5")
    books.execute("UPDATE uploads SET token = '1'")
    for path in (
        "members/1",
        "webhooks/1",
        "batches/1",
        "reversals/2",
        "send/1/outcome",
        f"transactions/{POSITIONS}/hold",
    ):
        assert victim.get(f"/{path}").status_code == 200, path
    return victim


def test_a_member_sees_and_changes_nothing_of_another_organization(app: Flask) -> None:
    victim = _victim(app)
    admin = visitor(app, books.make_organization(name="Acme"), ADMIN)
    token, before = forgery_token(admin.get()), _everything()
    for method, path, names_a_row in _paths(app, "GET", "POST"):
        if names_a_row:
            answer = admin.client.open(path, method=method, data=_FORM | {"csrf_token": token})
            assert answer.status_code == 404, path
        elif method == "GET":
            page = admin.get(path).data.decode(errors="replace")  # A download may be no text.
            for secret in ("Umbrella", "victim", "secret@", "Theirs", "4,321", "pts_live", "people.csv"):
                assert secret not in page, (path, secret)
    assert _everything() == before
    assert victim.get().status_code == 200


def test_every_page_says_what_may_run_in_it(app: Flask) -> None:
    admin = visitor(app, books.make_organization(), ADMIN)
    paths = [path for _, path, _ in _paths(app, "GET")]
    paths += ["/console/sign-in", "/console/nowhere", "/console/static/console.css"]
    for answer in map(admin.client.get, paths):
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert not re.search(r"https?:|unsafe|\*|data:", policy)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store, private"
        if (answer.mimetype or "").startswith("text/"):
            assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", answer.text)


def test_an_error_is_a_page_that_says_nothing_of_a_fault_of_ours(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = visitor(app, books.make_organization(), ADMIN)
    monkeypatch.setitem(app.view_functions, "console.overview", lambda: 1 / 0)
    for method, path, status in (
        ("GET", "/console/nowhere", 404),
        ("GET", "/console/live/nowhere", 404),
        ("GET", "/console/static/frame.html", 404),
        ("GET", "/console/live/members/99999999999999999999", 404),
        ("DELETE", "/console/live", 405),
        ("POST", "/console/link/x", 400),
        ("GET", "/console/live", 500),
    ):
        answer = admin.client.open(path, method=method, headers={"Accept": "application/json"})
        assert answer.status_code == status, path
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "<h1>" in answer.text
    assert answer.headers["X-Request-Id"] in answer.text
    assert "zero" not in answer.text


def test_while_postgresql_is_away_the_console_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    forget_everything()
    for path in ("/console/sign-in", "/console/live"):
        answer = create_app().test_client().get(path)
        assert answer.status_code == 503
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_the_interface_knows_no_cookie_and_answers_json(app: Flask) -> None:
    admin = visitor(app, books.make_organization(), ADMIN)
    cookie = admin.client.get_cookie("points_console", path="/console")
    assert cookie is not None
    answer = app.test_client().get("/v1/organization", headers={"Cookie": f"points_console={cookie.value}"})
    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/json"
    assert "Set-Cookie" not in answer.headers
    assert app.test_client().get("/consoles").headers["Content-Type"] == "application/json"
