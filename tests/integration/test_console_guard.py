"""What guards the console: forged forms, roles, strangers, other organizations; and that errors are pages."""

import re
from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from werkzeug.routing import Rule

from app import api_keys
from app.console import blueprints
from app.members.members import ADMIN, ROLES, SENDER, VIEWER
from app.postgres.database import transaction
from app.web.application import create_app
from app.webhooks import webhooks
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.visitors import Visitor, forgery_token, visitor

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Flask:
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    forget_everything()
    return create_app()


def _rules(app: Flask, method: str) -> Iterator[tuple[Rule, str]]:
    """Yield each page or form for members, with its path for the row 1."""
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith("console.") and method in (rule.methods or ()):
            yield rule, re.sub(r"<[^>]+>", "1", re.sub(r"<any\((\w+)[^>]*>", r"\1", rule.rule))


def _everything() -> list[object]:
    """Return all that forms of this page can change, but the last sight of a session."""
    tables = (
        "members",
        "member_sessions",
        "actions",
        "api_keys",
        "batches",
        "reversals",
        "organizations",
        "webhooks",
    )
    with transaction() as connection:
        return [connection.exec_driver_sql(f"SELECT {t}::text FROM {t} ORDER BY 1").scalars().all() for t in tables]


_FORM = {"mode": "live", "role": "admin", "email": "x@example.com", "first_name": "X", "last_name": "Y"}
_FORM |= {"url": "https://example.com/hook", "types": "*", "from_sequence": "1", "form_id": "f" * 24}


def test_every_form_says_which_role_it_is_for(app: Flask) -> None:
    forms = {rule.endpoint for rule, _ in _rules(app, "POST")}
    assert len(forms) >= 10
    assert all(app.view_functions[endpoint].__dict__.get("needs") in ROLES for endpoint in forms)


def test_a_form_without_its_token_or_with_another_sessions_changes_nothing(app: Flask) -> None:
    organization_id = books.make_organization()
    admin = visitor(app, organization_id, ADMIN)
    attacker = visitor(app, organization_id, ADMIN, "attacker@example.com")
    with transaction() as connection:
        api_keys.create(connection, organization_id, sandbox=False)
    theirs, before = forgery_token(attacker.get()), _everything()
    tokens = (None, "", "x", theirs, f"{theirs[:-1]}x", f"{theirs}\n")
    for _, path in _rules(app, "POST"):
        for token in tokens:
            form = _FORM | ({} if token is None else {"csrf_token": token})
            answer = admin.client.post(path, data=form)
            assert answer.status_code == 400, (path, token)
            assert "Nothing was changed" in answer.text
        own = forgery_token(admin.get())
        assert admin.client.post(f"{path}?csrf_token={own}", data=_FORM).status_code == 400
        assert admin.client.post(path, json=_FORM | {"csrf_token": own}).status_code == 400
        assert admin.client.get(path, query_string=_FORM | {"csrf_token": own}).status_code in (200, 404, 405)
    assert _everything() == before


@pytest.mark.parametrize("role", [VIEWER, SENDER])
def test_a_member_can_do_by_no_form_what_the_role_does_not_allow(app: Flask, role: str) -> None:
    organization_id = books.make_organization()
    one = visitor(app, organization_id, role)
    with transaction() as connection:
        api_keys.create(connection, organization_id, sandbox=False)
    before, tried = _everything(), 0
    for method in ("GET", "POST"):
        for rule, path in _rules(app, method):
            least = app.view_functions[rule.endpoint].__dict__.get("needs", VIEWER)
            if ROLES.index(least) > ROLES.index(role):
                tried += 1
                token = forgery_token(one.get())
                answer = one.client.open(path, method=method, data=_FORM | {"csrf_token": token})
                assert answer.status_code == 403, path
                assert "Your role" in answer.text
    assert tried >= 8
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
    for method in ("GET", "POST"):
        for _, path in _rules(app, method):
            answer = client.open(path, method=method, data=_FORM | {"csrf_token": token})
            assert answer.status_code in (302, 303), path
            assert answer.location.startswith("/console/sign-in")
    assert _everything() == before


def test_a_member_sees_and_changes_nothing_of_another_organization(app: Flask) -> None:
    theirs, own = books.make_organization(4_321, name="Umbrella"), books.make_organization(name="Acme")
    victim = visitor(app, theirs, ADMIN, "victim@example.com")
    with transaction() as connection:
        key_id, _ = api_keys.create(connection, theirs, sandbox=False)
        webhook = webhooks.create(
            connection,
            organization_id=theirs,
            sandbox=False,
            url="https://victim.example.com",
            types=["*"],
            description="Theirs",
            secret="none",
        )
    books.queue_batch(theirs, ["secret@example.com"], 21, label="Theirs")
    books.drain_all(theirs)
    assert victim.post("/members", of="/members", **_FORM).status_code == 200
    assert (victim.member_id, key_id, webhook.id) == (1, 1, 1)
    admin = visitor(app, own, ADMIN)
    before, tried = _everything(), 0
    for method in ("GET", "POST"):
        for rule, path in _rules(app, method):
            form = {"csrf_token": forgery_token(admin.get()), **_FORM}
            if rule.arguments - {"mode", *(rule.defaults or ())}:
                tried += 1
                answer = admin.client.open(path, method=method, data=form)
                assert answer.status_code == 404, path
            elif method == "GET":
                page = admin.get(path).data.decode(errors="replace")  # A download may be no text.
                for secret in ("Umbrella", "victim", "secret@", "Theirs", "4,321", "pts_live", "Xavier"):
                    assert secret not in page, (path, secret)
    assert tried >= 6
    assert _everything() == before
    assert victim.get().status_code == 200


def test_every_page_says_what_may_run_in_it(app: Flask) -> None:
    admin = visitor(app, books.make_organization(), ADMIN)
    answers = [admin.client.get(path) for _, path in _rules(app, "GET")]
    answers += [admin.get("/console/sign-in"), admin.get("/console/nowhere"), admin.get("/console/static/console.css")]
    for answer in answers:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert not re.search(r"https?:|unsafe|\*|data:", policy)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store, private"
        if (answer.mimetype or "").startswith("text/"):
            assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", answer.text)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/console/nowhere", 404),
        ("GET", "/console/live/nowhere", 404),
        ("GET", "/console/static/frame.html", 404),
        ("GET", "/console/live/members/999", 404),
        ("GET", "/console/live/members/99999999999999999999", 404),
        ("DELETE", "/console/live", 405),
        ("POST", "/console/link/x", 400),
    ],
)
def test_an_error_is_a_page(app: Flask, method: str, path: str, status: int) -> None:
    admin = visitor(app, books.make_organization(), ADMIN)
    answer = admin.client.open(path, method=method, headers={"Accept": "application/json"})
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "<h1>" in answer.text


def test_a_form_of_a_stranger_is_read_only_as_far_as_one_may_go(app: Flask) -> None:
    client = app.test_client()
    form = {"email": "x" * 20_000, "password": "x", "csrf_token": forgery_token(client.get("/console/sign-in"))}
    answer = client.post("/console/sign-in", data=form)
    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_a_fault_of_ours_is_a_page_that_says_nothing_of_it(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    one = visitor(app, books.make_organization(), VIEWER)
    monkeypatch.setitem(app.view_functions, "console.overview", lambda: 1 / 0)
    answer = one.get()
    assert answer.status_code == 500
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


def test_a_view_that_names_no_role_can_change_nothing(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = visitor(app, books.make_organization(), ADMIN)
    monkeypatch.delitem(app.view_functions["console.make_key"].__dict__, "needs")
    assert _post(admin, "/keys", mode="live").status_code == 403
    assert blueprints.ROOT == "/console"


def _post(one: Visitor, path: str, **form: str):  # type: ignore[no-untyped-def]
    return one.post(path, of="/account", **form)
