"""Members of an organization at the console, each with a browser of its own: a client that keeps its cookie."""

import html
import re
from dataclasses import dataclass

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.members import links, sessions
from app.postgres.database import transaction
from app.values.passwords import hash_password
from tests.integration import books

PASSWORD = "correct horse battery"
_HASH = hash_password(PASSWORD)

_FORM_ID = re.compile(r'name="form_id" value="([^"]+)"')
_FORGERY_TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')


@dataclass(frozen=True, kw_only=True)
class Visitor:
    """A member who is signed in. `get` and `post` take the path behind `/console/live`, or a whole one."""

    member_id: int
    organization_id: int
    email: str
    client: FlaskClient

    def get(self, path: str = "") -> TestResponse:
        return self.client.get(_whole(path))

    def post(self, path: str, *, of: str | None = None, **fields: object) -> TestResponse:
        """Send a form as the page `of` (the path itself, where none is named) protects it."""
        page = self.client.get("/console/live" if of is None else _whole(of))
        form_id = _FORM_ID.search(page.text)
        hidden = {"csrf_token": forgery_token(page), "form_id": form_id[1] if form_id else ""}
        return self.client.post(_whole(path), data=hidden | fields)


def forgery_token(page: TestResponse) -> str:
    found = _FORGERY_TOKEN.search(page.text)
    assert found, "the page has a form"
    return found[1]


def make_member(organization_id: int, email: str, role: str) -> int:
    """Make a member with `PASSWORD`."""
    with transaction() as connection:
        member_id, token = links.add(connection, organization_id, email, "Ann", role.capitalize(), role=role, by=None)
        member = links.find_by_link(connection, token)
        assert member is not None
        links.choose_password(connection, member, _HASH)
    return member_id


def sign_in(app: Flask, email: str, password: str = PASSWORD) -> tuple[FlaskClient, TestResponse]:
    client = app.test_client()
    form = {"email": email, "password": password, "csrf_token": forgery_token(client.get("/console/sign-in"))}
    return client, client.post("/console/sign-in", data=form)


def visitor(app: Flask, organization_id: int, role: str, email: str | None = None) -> Visitor:
    """Make a member of an organization and sign in."""
    email = email or f"{role}-{organization_id}@example.com"
    member_id = make_member(organization_id, email, role)
    client = app.test_client()
    token = books.run(sessions.begin, member_id, _HASH)
    with client.session_transaction(path="/console/live") as cookie:
        cookie.update(token=token, is_members=True)
    return Visitor(member_id=member_id, organization_id=organization_id, email=email, client=client)


def words_of(page: TestResponse) -> str:
    """Return the text of a page, on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.text)).replace("\u202f", " ").split())


def _whole(path: str) -> str:
    return path if path.startswith("/console") else f"/console/live{path}"
