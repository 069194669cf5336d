"""What holds for every form of the console: one effect, no word of what is not known, faults told at their fields."""

import html
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from werkzeug.test import TestResponse

from app.console.slow_work import list_checks, password_work
from app.members import links, members
from app.postgres.database import transaction
from app.values import numbers
from app.values.key_hashes import hash_token
from app.web.application import create_app
from tests.conftest import forget_everything
from tests.crash.proxy import Proxy
from tests.integration import books
from tests.integration.console_forms import Form, all_forms, all_pages, filled, read, scene
from tests.integration.visitors import PASSWORD, Visitor, forgery_token

pytestmark = pytest.mark.usefixtures("database", "broker")

_STATE = {
    "members": "- 'wrong_passwords' - 'wrong_since'",  # A try is counted, whatever it was for.
    "member_sessions": "- 'seen_at'",
    **dict.fromkeys(("api_keys", "webhooks", "uploads", "batches", "transactions", "reversals"), ""),
    "organizations": "",
    **dict.fromkeys(("unnumbered_events", "events"), ""),
}

_NOT_TYPED = ("csrf_token", "form_id", "seen")
_WRONG = ("", "x\0" * 200)
# The names of the interface, and its words for what a program sends; not those of events, which a webhook's page lists.
_OF_PROGRAMS = re.compile(r"(?<!\.)\b[a-z]+_[a-z_]+\b|\.\d|\b(?:parameter|array|string|integer|null|JSON|field)\b")


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Flask:
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    monkeypatch.setenv("POINTS_WEBHOOK_ALLOW", "192.0.2.0/24")
    forget_everything()
    return create_app()


def _state() -> list[object]:
    return [books.values(f"SELECT to_jsonb({table}) {less} FROM {table} ORDER BY 1") for table, less in _STATE.items()]


def _actions() -> Counter[str]:
    return Counter(books.values("SELECT action FROM actions"))


def test_every_form_has_its_effect_once_and_a_lost_answer_is_not_called_nothing(
    postgresql_proxy: Proxy, app: Flask
) -> None:
    forms = all_forms(app, scene(app))
    expected = {rule.endpoint for rule in app.url_map.iter_rules() if "POST" in (rule.methods or ())}
    assert {form.endpoint for form in forms.values()} == {name for name in expected if name.startswith("console.")}
    for name, form in forms.items():
        admin = scene(app)
        fields, before, actions = filled(admin, form), _state(), _actions()
        postgresql_proxy.tell("cut_answer 1")
        lost = admin.client.post(form.action, data=fields)
        postgresql_proxy.tell("forward")
        assert lost.status_code == 503, (name, lost.text)
        assert "It is not known whether this was done" in lost.text, name
        assert "Nothing was" not in lost.text, name
        [told_at] = re.findall(r'<a class="button" href="([^"]+)">See whether', lost.text)
        assert admin.client.get(told_at).status_code in (200, 302, 303), name
        admin.client.post(form.action, data=fields)
        once = _state()
        repeated = admin.client.post(form.action, data=fields)
        assert repeated.status_code < 500, name
        assert _state() == once, name
        assert once != before, name
        assert all(count == 1 for count in (_actions() - actions).values()), name


def test_a_look_that_fails_says_nothing_of_changes_and_looks_again(postgresql_proxy: Proxy, app: Flask) -> None:
    admin = scene(app)
    postgresql_proxy.tell("cut_answer 1")
    page = admin.get("/batches/1")
    postgresql_proxy.tell("forward")
    assert page.status_code == 503
    assert page.headers["Retry-After"]
    assert "cannot reach its database" in page.text
    assert not re.search("Nothing was|not known", page.text)
    assert '<noscript><meta http-equiv="refresh"' in page.text
    assert 'id="live" data-over="no"' in page.text


def test_a_form_that_no_view_has_begun_has_changed_nothing(postgresql_proxy: Proxy, app: Flask) -> None:
    admin = scene(app)
    postgresql_proxy.tell("refuse")
    page = admin.client.post("/console/live/keys", data={"mode": "live"})
    postgresql_proxy.tell("drop")
    page = admin.client.post("/console/live/keys", data={"mode": "live"})
    postgresql_proxy.tell("forward")
    assert page.status_code == 503
    assert "Nothing was changed." in page.text


def test_a_form_whose_session_is_over_says_so_changes_nothing_and_is_kept(app: Flask) -> None:
    admin = scene(app)
    kept_by: dict[str, int] = {}
    for name, form in all_forms(app, admin).items():
        typed = {field: text for field, text in filled(admin, form).items() if field not in _NOT_TYPED}
        fields = filled(admin, form)
        _end_session(admin)
        before = _state()
        over = admin.client.post(form.action, data=fields)
        assert over.status_code == 403, name
        assert "You were signed out." in over.text, name
        assert "Nothing was issued or changed." in over.text, name
        assert _state() == before, name
        back = _sign_in_on(admin, over)
        if back.status_code == 200:
            [again] = read("", back)[1]
            assert again.action == form.action, name
            assert {field: again.fields[field] for field, text in typed.items() if text} == {
                field: text for field, text in typed.items() if text
            }, name
            kept_by[form.endpoint] = len(typed)
        else:
            assert "signed in again" in admin.client.get(back.location, follow_redirects=True).text, name
    assert {"console.send", "console.take_back", "console.members", "console.webhooks"} <= set(kept_by)
    assert not {"console.confirm", "console.change_password"} & set(kept_by)


def _end_session(admin: Visitor) -> None:
    """End the session of this browser, as an admin elsewhere or the time does."""
    with admin.client.session_transaction(path="/console/live") as cookie:
        found = hash_token(cookie["token"])
    with transaction() as connection:
        connection.exec_driver_sql("UPDATE member_sessions SET revoked_at = now() WHERE hash = %s", (found,))


def _sign_in_on(admin: Visitor, page: TestResponse) -> TestResponse:
    """Sign in on a page that asks for it."""
    [form] = read("", page)[1]
    return admin.client.post(form.action, data=form.fields | {"email": admin.email, "password": PASSWORD})


def test_a_long_pasted_list_survives_the_end_of_the_session(app: Flask) -> None:
    admin = scene(app)
    pasted = "\r\n".join(f"someone.{number}@example.com" for number in range(3_000))
    [form] = [form for form in read("", admin.get("/send"))[1] if form.action.endswith("/send")]
    _end_session(admin)
    over = admin.client.post(form.action, data=form.fields | {"pasted": pasted, "amount": "7"})
    [asked] = read("", over)[1]
    wrong = admin.client.post(asked.action, data=asked.fields | {"email": admin.email, "password": "a wrong password"})
    assert wrong.status_code == 403
    [again] = read("", _sign_in_on(admin, wrong))[1]
    answer = admin.client.post(again.action, data=again.fields)
    assert answer.status_code == 303, answer.text
    assert numbers.points(21_000) in admin.get(answer.location).text


def test_a_stranger_cannot_have_a_long_form_read(app: Flask) -> None:
    books.empty()
    client = app.test_client()
    form = {"csrf_token": forgery_token(client.get("/console/sign-in")), "email": "x@example.com", "password": "x"}
    for name in ("email", "kept-pasted"):
        answer = client.post("/console/sign-in", data=form | {"form": "/console/live/send", name: "x" * 20_000})
        assert answer.status_code == 413
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


@pytest.fixture
def no_turn() -> Iterator[None]:
    """Have every place of the slow work be taken."""
    for turns in (list_checks, password_work):
        for _ in range(turns.waiting_max):
            assert turns._places.acquire(blocking=False)
    yield
    for turns in (list_checks, password_work):
        turns._places.release(turns.waiting_max)


def test_who_finds_no_turn_is_told_that_and_keeps_what_was_typed(app: Flask, request: pytest.FixtureRequest) -> None:
    admin = scene(app)
    forms = {name.partition(" ")[0]: form for name, form in all_forms(app, admin).items()}
    tries = [
        (forms["console.send"], {"amount": "77", "pasted": "eve@example.com"}, "Too many lists are being checked"),
        (forms["console.check_again"], {"amount": "77"}, "Too many lists are being checked"),
        (forms["console.change_password"], {}, "Too many people are signing in"),
        (Form(page="/console/sign-in", action="/console/sign-in"), {"email": "x@example.com"}, "Too many people"),
    ]
    request.getfixturevalue("no_turn")
    for form, typed, sentence in tries:
        fields = filled(admin, form) | typed
        answer = admin.client.post(form.action, data=fields)
        assert answer.status_code == 503, form.action
        assert int(answer.headers["Retry-After"]) > 0
        assert sentence in answer.text
        assert "database" not in answer.text
        assert all(text in answer.text for text in typed.values()), form.action


def test_in_the_sandbox_every_link_stays_there_and_no_page_calls_real_things_unreal(app: Flask) -> None:
    admin = scene(app)
    pages = dict(all_pages(admin, "/console/sandbox"))
    pages |= {path: admin.client.get(path) for path in ("/console/sandbox/nowhere", "/console/sandbox/batches/77")}
    pages["sign out"] = admin.client.post("/console/sandbox/keys", data={})
    assert len(pages) >= 12
    for path, page in pages.items():
        body = re.sub(r'<nav class="modes".*?</nav>', "", page.text, flags=re.DOTALL)
        if path.endswith("/activity"):  # Here is what was done in both modes; a link that says “live” leads there.
            body = re.sub('<a href="[^"]*">[^<]* live [^<]*</a>', "", body)
        assert not re.findall(r'(?:href|action)="(/console(?:/live[^"]*)?)"', body), path
        if page.status_code == 200:
            of_both = bool(re.search("/(keys|members|settings|activity|account)", path))
            assert ("nothing here is real" in body) != of_both, path
            assert ("what you do on this page is real" in body) == of_both, path
    answer = admin.post("/console/sandbox/sign-out", of="/console/sandbox")
    assert answer.location.endswith("next=/console/sandbox")


def test_a_key_is_not_shown_again_and_the_page_says_what_to_do(app: Flask) -> None:
    admin = scene(app)
    forms = all_forms(app, admin)
    for name, lost in (("keys", "key"), ("webhooks", "secret"), ("rotate_webhook", "secret")):
        form = next(form for key, form in forms.items() if key.startswith(f"console.{name} "))
        fields = filled(admin, form)
        assert admin.client.post(form.action, data=fields).status_code == 200
        again = admin.client.post(form.action, data=fields)
        assert again.status_code == 303
        assert f"Nothing was done again. The {lost} was shown then." in admin.client.get(again.location).text


def test_a_field_at_fault_is_told_beside_it_and_in_a_summary_that_leads_there(app: Flask) -> None:
    admin = scene(app)
    tried = set()
    for form in all_forms(app, admin).values():
        for field in form.typed:
            told = set[str]()
            for wrong in _WRONG:
                answer = admin.client.post(form.action, data=filled(admin, form) | {field: wrong})
                if "There is a problem" in answer.text:
                    told |= _fields_told(answer, form.page)
                else:  # The form was taken: what it has changed is made undone.
                    admin = scene(app)
            assert field in told, (form.action, told)
            tried.add((form.endpoint, field))
    assert len(tried) >= 25


def test_so_is_one_of_the_forms_before_the_sign_in(app: Flask) -> None:
    admin = scene(app)
    with transaction() as connection:
        token = links.make_link(connection, members.lock(connection, admin.member_id), by=None)
    for path in ("/console/sign-in", f"/console/link/{token}"):
        [form] = [one for one in read(path, admin.client.get(path))[1] if "password" in one.fields]
        for field in form.typed:
            answer = admin.client.post(form.action, data=filled(admin, form) | {field: ""})
            assert _fields_told(answer, form.page) == {field}


def test_so_are_the_faults_of_a_search(app: Flask) -> None:
    admin = scene(app)
    for of in ("batches", "transactions", "held", "reversals"):
        page = admin.get(f"/{of}")
        names = re.findall(r'<(?:input|select)[^>]* name="(\w+)"', page.text.partition('role="search"')[2])
        assert len(names) >= 3
        for name in names:
            answer = admin.client.get(f"/console/live/{of}", query_string={name: _WRONG[1]})
            assert _fields_told(answer, of) == {name}
        unknown = admin.get(f"/{of}?send_at=1&credited=maybe")
        assert "this list does not know" in unknown.text
        assert _fields_told(unknown, of) == set()


def _fields_told(answer: TestResponse, where: str) -> set[str]:
    """Check the summary of a page, and return the fields beside which a fault stands."""
    page = answer.text
    assert "<title>Error: " in page, where
    [(head, lines)] = re.findall(r'<div class="problems"([^>]*)>(.*?)</div>', page, flags=re.DOTALL)
    assert 'tabindex="-1" autofocus' in head, where
    for link in re.findall('href="#([^"]*)"', lines):
        [control] = re.findall(rf'<(?:input|select|textarea)[^>]* id="{link}"[^>]*>', page)
        assert 'type="hidden"' not in control, (where, link)
    summary = html.unescape(re.sub("<[^>]+>", " ", lines))
    assert not _OF_PROGRAMS.findall(summary), (where, summary)
    told = re.findall(r'<p class="wrong" id="((\w+)-wrong-\d+)">([^<]*)</p>', page)
    for place, field, sentence in told:
        assert f">{sentence}<" in lines, (where, sentence)
        assert re.search(rf'aria-describedby="[^"]*\b{place}\b', page), (where, place)
        assert f'href="#{field}' in lines, (where, field)
    return {field for _, field, _ in told}
