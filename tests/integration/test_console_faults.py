"""What holds for every form of the console at fault: a summary that leads to its fields, in the words of the page."""

import html
import re
from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from werkzeug.test import TestResponse

from app.members import links, members
from app.postgres.database import transaction
from app.web.application import create_app
from tests.conftest import forget_everything
from tests.integration.console_forms import Form, all_forms, filled, read, scene
from tests.integration.visitors import Visitor

pytestmark = pytest.mark.usefixtures("database", "broker")

_WRONG = ("", "x\0" * 200)
_SEARCHES = ("batches", "transactions", "held", "reversals")
# The names of the interface, and its words for what a program sends; not those of events, which a webhook's page lists.
_OF_PROGRAMS = re.compile(r"(?<!\.)\b[a-z]+_[a-z_]+\b|\.\d|\b(?:parameter|array|string|integer|null|JSON|field)\b")


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Flask:
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    monkeypatch.setenv("POINTS_WEBHOOK_ALLOW", "192.0.2.0/24")
    forget_everything()
    return create_app()


def _doors(admin: Visitor) -> Iterator[Form]:
    """Yield the forms of people who are not signed in."""
    with transaction() as connection:
        token = links.make_link(connection, members.lock(connection, admin.member_id), by=None)
    for path in ("/console/sign-in", f"/console/link/{token}"):
        [form] = [one for one in read(path, admin.client.get(path))[1] if "password" in one.fields]
        yield form


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
    for form in _doors(admin):
        for field in form.typed:
            answer = admin.client.post(form.action, data=filled(admin, form) | {field: ""})
            assert _fields_told(answer, form.page) == {field}


@pytest.mark.parametrize("of", _SEARCHES)
def test_so_are_the_faults_of_a_search(app: Flask, of: str) -> None:
    admin = scene(app)
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
