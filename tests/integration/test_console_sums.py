"""What the pages of the console say in figures: each in points, and beside it of how many recipients."""

import re

import pytest
from flask import Flask

from tests.integration import books
from tests.integration.visitors import visitor, words_of

pytestmark = pytest.mark.usefixtures("database")

ANN = "ann@example.com"


def test_each_page_tells_points_and_beside_them_of_how_many_recipients(app: Flask) -> None:
    books.make_users(ANN)
    organization_id = books.make_organization(100)
    batch_id = books.issue_now(organization_id, [ANN, "bo@example.com", "cy@example.com"], 40)
    one = visitor(app, organization_id, "sender")
    assert "Held 40 for 1 recipient without" in words_of(one.get())
    batch = words_of(one.get(f"/batches/{batch_id}"))
    for tile in ("issued 80 to 2 recipients", "Credited 40 to 1", "Held 40 for 1", "Not debited 40 for 1 recipient:"):
        assert tile in batch
    asked = words_of(one.get(f"/batches/{batch_id}/take-back"))
    for tile in ("come back 80", "From users 40 1 user loses", "Held 40 for 1 recipient:", "1 recipient skipped"):
        assert tile in asked
    reversal_id = books.reverse_now(organization_id, batch_id=batch_id, amount=15)
    assert "taken back 30 from 2 recipients" in words_of(one.get(f"/reversals/{reversal_id}"))
    batch = words_of(one.get(f"/batches/{batch_id}"))
    for tile in ("issued 80 to 2", "Credited 25 to 1", "Held 25 for 1 recipient", "Taken back 30 from 2 recipients"):
        assert tile in batch
    assert "Held 25 for 1 recipient without" in words_of(one.get())


def test_points_held_too_long_are_told_apart_from_those_taken_back(app: Flask) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.issue_now(organization_id, [ANN, "bo@example.com"], 20, hold_days=5)
    books.let_days_pass(6)
    books.return_unclaimed()
    batch = words_of(visitor(app, organization_id, "viewer").get(f"/batches/{batch_id}"))
    assert "Held 0 for 0 recipients" in batch
    assert "Returned 40 held too long for 2 recipients" in batch
    assert not re.search("Taken back [0-9]", batch)


def test_the_sum_of_what_is_held_does_not_stop_at_a_thousand(app: Flask) -> None:
    organization_id = books.make_organization(10_000)
    books.issue_now(organization_id, [f"p{number}@example.com" for number in range(1_001)], 3)
    page = words_of(visitor(app, organization_id, "viewer").get())
    assert "Held 3,003 for 1,001 recipients without" in page
    assert "over" not in page
