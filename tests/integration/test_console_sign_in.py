"""Signing in at the console: links good once, passwords, the lock, sessions that end."""

import pytest
from flask import Flask

from app.api import create_app
from tests.integration import books
from tests.integration.visitors import make_member, sign_in, visitor

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def app() -> Flask:
    return create_app()


def test_a_member_signs_in_and_sees_the_organization(app: Flask) -> None:
    make_member(books.make_organization(1234), "ann@example.com", "viewer")
    client, answer = sign_in(app, " Ann@Example.com ")
    assert (answer.status_code, answer.location) == (303, "/console/live")
    assert "1 234" in client.get("/console/live").text.replace("\u00a0", " ").replace("\u202f", " ")


def test_who_is_signed_in_may_look(app: Flask) -> None:
    assert visitor(app, books.make_organization(), "viewer").get().status_code == 200
