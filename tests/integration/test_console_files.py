"""The lists that the console reads and writes: workbooks, pasted addresses, lines that are left out and come back."""

import re
from io import BytesIO

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.web.application import create_app
from tests.integration import books
from tests.integration.test_console_send import checked, confirm, upload, words_of
from tests.integration.visitors import Visitor, visitor
from tests.unit.workbooks import Rows, xlsx

pytestmark = pytest.mark.usefixtures("database", "broker")


@pytest.fixture
def app() -> Flask:
    return create_app()


@pytest.fixture
def ann(app: Flask) -> Visitor:
    """Sign in a sender of an organization with some points."""
    return visitor(app, books.make_organization(1_000, sandbox_balance=500), "sender")


def answered(of: Visitor, path: str, **fields: str) -> TestResponse:
    """Answer the open question of a list; return its page."""
    answer = of.post(path, of="/account", **fields)
    return answer if answer.status_code == 400 else of.get(path)


def test_of_a_workbook_the_sheet_and_then_the_column_are_asked_for(ann: Visitor) -> None:
    may: Rows = [["email", "Mail", "amount"], ["ann@example.com", "boss@example.com", 5], ["bob@example.com", None, 6]]
    june: Rows = [["email", "amount"], ["cy@example.com", 7]]
    path = checked(ann, xlsx({"Notes": [["none"]], "May": may, "June": june}, hidden="June"))
    asked = ann.get(path)
    assert "has addresses in 2 sheets: “May” and “June” (hidden)" in words_of(asked)
    assert "“May”: 2 lines with addresses" in words_of(asked)
    assert "Choose the sheet." in answered(ann, path).text
    columns = answered(ann, path, sheet="May")
    assert "“email” (1) ann@example.com, bob@example.com" in words_of(columns)
    assert "“Mail” (2) boss@example.com" in words_of(columns)
    assert "Recipients 1" in words_of(answered(ann, path, sheet="June"))
    assert "Choose the column." in answered(ann, path, sheet="May").text or "“Mail” (2)" in ann.get(path).text
    found = words_of(answered(ann, path, sheet="May", column="0"))
    assert "Sheet “May” Address column “email” (1)" in found
    assert "the addresses in the sheet “June” (hidden)" in found
    assert confirm(ann, path).status_code == 303
    books.drain_all(ann.organization_id)
    assert books.balance_of(ann.organization_id) == 1_000 - 11


def test_a_file_that_is_no_readable_workbook_is_told_beside_its_field(ann: Visitor) -> None:
    refused = upload(ann, b"PK\x03\x04 and no more")
    assert refused.status_code == 400
    assert "cannot be read as a workbook" in refused.text


def test_the_example_file_is_a_list_as_it_is(ann: Visitor) -> None:
    example = ann.get("/send/example.xlsx")
    assert example.headers["Content-Disposition"] == "attachment; filename=points.xlsx"
    assert re.search("An example file", ann.get("/send").text)
    found = words_of(ann.get(checked(ann, BytesIO(example.data).getvalue())))
    assert "Recipients 3 Points in all 400 Lines left out 0" in found
