"""The words of our own: each that a page shows of a row is explained there."""

import pytest
from flask import Flask

from app.batches.read import STATES, STATUSES
from app.members.members import VIEWER
from tests.integration import books
from tests.integration.visitors import Visitor, visitor

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", ["balance", "batch", "held", "refill", "scheduled"]),
        ("/batches", ["batch", "label", *STATUSES]),
        ("/transactions", ["reference", "label", "debited", *STATES]),
        ("/batches/1", ["reference", *STATES]),
        ("/held", ["debited", "returned", "reference"]),
        ("/reversals", ["reversal", "returned"]),
    ],
)
def test_a_page_explains_the_words_that_its_rows_have(app: Flask, path: str, words: list[str]) -> None:
    one: Visitor = visitor(app, books.make_organization(100), VIEWER)
    books.issue_now(one.organization_id, ["ann@example.com"], 10)
    page = one.get(path).text
    for word in words:
        assert f"<dfn>{word.replace('_', ' ').capitalize()}</dfn>" in page, word
