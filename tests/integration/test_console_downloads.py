"""Files from the console are saved under their names, whatever script these are in."""

import pytest
from flask import Flask
from sqlalchemy import text
from werkzeug.http import parse_options_header
from werkzeug.test import TestResponse

from app.postgres.database import transaction
from tests.integration import books
from tests.integration.console_forms import filled, read
from tests.integration.visitors import Visitor, visitor

pytestmark = pytest.mark.usefixtures("database", "broker")


def _sent(ann: Visitor) -> str:
    """Send a list, and return the path of its pages."""
    path = ann.post("/send", of="/send", pasted="eve@example.com", amount="2").location
    [form] = [
        form for form in read(f"{path}/confirm", ann.get(f"{path}/confirm"))[1] if form.action.endswith("confirm")
    ]
    assert ann.client.post(form.action, data=filled(ann, form)).status_code == 303
    books.drain_all(ann.organization_id)
    return path


def _saved_as(file: TestResponse) -> str:
    """Return the name as a browser reads it: of two, the one that tells its character set."""
    header = file.headers["Content-Disposition"]
    assert header.isascii()
    return parse_options_header(header)[1]["filename"]


@pytest.mark.parametrize("name", ["Spring", "Frühling – 2026", "メール", "“\"a\\b';x", "100 % 😀"])
def test_a_result_file_is_saved_under_the_name_of_its_list(app: Flask, name: str) -> None:
    ann = visitor(app, books.make_organization(1_000), "sender")
    path = _sent(ann)
    with transaction() as connection:
        connection.execute(text("UPDATE uploads SET name = :name"), {"name": f"{name}.csv"})
    file = ann.get(f"{path}/outcome.csv")
    assert file.status_code == 200
    assert _saved_as(file) == f"{name}.result.csv"
