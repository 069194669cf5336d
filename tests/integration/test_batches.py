"""The rows of batches: accepted under a key once, found by their own organization and mode alone."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from app.batches import read as batches
from app.batches.accept import Acceptance, Send, accept
from app.batches.request import IssueRequest
from app.errors import IdempotencyKeyReused, PointsError
from app.postgres.database import transaction
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"
REQUEST = IssueRequest(emails=[ANN, BOB], email_keys=[ANN, BOB], amount=10, atomic=False, label="Spring")


def _accept(
    organization_id: int, request: IssueRequest = REQUEST, *, sandbox: bool = False, key: str | None = "once"
) -> Acceptance | PointsError | None:
    with transaction() as connection:
        send = Send(books.key_of(connection, organization_id, sandbox), request, key)
    with transaction() as connection:
        [outcome] = accept(connection, [send])
    return outcome


def _accepted(organization_id: int, request: IssueRequest = REQUEST, **how: Any) -> Acceptance:
    outcome = _accept(organization_id, request, **how)
    assert isinstance(outcome, Acceptance), outcome
    return outcome


def test_an_accepted_batch_is_queued_as_it_was_asked_for() -> None:
    organization_id = books.make_organization()
    emails = ["Bob@Example.com", ANN]
    request = IssueRequest(emails=emails, email_keys=[BOB, ANN], amount=7, atomic=True, label=None)
    batch_id = _accepted(organization_id, request, key=None).batch_id
    batch, transactions = books.read_batch(organization_id, batch_id)
    assert (batch.status, batch.amount, batch.label, batch.issued_at) == ("queued", 7, None, None)
    assert transactions == []
    books.drain_all(organization_id)
    assert [row.email for row in books.read_batch(organization_id, batch_id)[1]] == emails


@pytest.mark.parametrize("sandbox", [False, True], ids=["live", "sandbox"])
def test_a_batch_is_found_by_its_own_organization_and_mode_alone(*, sandbox: bool) -> None:
    mine, other = books.make_organization(), books.make_organization()
    batch_id = _accepted(mine, sandbox=sandbox).batch_id
    with transaction() as connection:
        find = partial(batches.find, connection)
        found = find(batch_id, organization_id=mine, sandbox=sandbox)
        assert found is not None
        assert (found.id, found.organization_id, found.sandbox) == (batch_id, mine, sandbox)
        assert find(batch_id, organization_id=mine, sandbox=not sandbox) is None
        assert find(batch_id, organization_id=other, sandbox=sandbox) is None
        assert find(batch_id + 1, organization_id=mine, sandbox=sandbox) is None


def test_a_key_finds_the_batch_that_was_accepted_with_the_same_meaning() -> None:
    organization_id = books.make_organization(100)
    first = _accepted(organization_id)
    assert (first.existed, first.status, first.organization_id) == (False, "queued", organization_id)
    again = _accepted(organization_id)
    assert (again.batch_id, again.status, again.existed) == (first.batch_id, "queued", True)
    books.drain_all(organization_id)
    again = _accepted(organization_id)
    assert (again.batch_id, again.status, again.existed) == (first.batch_id, "issued", True)
    assert books.counts() == (0, 2)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(REQUEST, amount=11), id="amount"),
        pytest.param(replace(REQUEST, atomic=True), id="atomic"),
        pytest.param(replace(REQUEST, label=None), id="no label"),
        pytest.param(replace(REQUEST, label="Autumn"), id="label"),
        pytest.param(replace(REQUEST, emails=[BOB, ANN], email_keys=[BOB, ANN]), id="order"),
        pytest.param(replace(REQUEST, emails=[ANN], email_keys=[ANN]), id="recipients"),
    ],
)
def test_a_key_with_another_meaning_is_refused(other: IssueRequest) -> None:
    organization_id = books.make_organization()
    _accepted(organization_id)
    assert isinstance(_accept(organization_id, other), IdempotencyKeyReused)
    assert books.counts() == (1, 0)


def test_a_key_counts_for_its_organization_and_mode_alone() -> None:
    mine, other = books.make_organization(), books.make_organization()
    accepted = [_accepted(mine), _accepted(mine, sandbox=True), _accepted(other), _accepted(mine, key="twice")]
    assert len({one.batch_id for one in accepted}) == 4
    assert not any(one.existed for one in accepted)


def test_without_a_key_two_equal_sends_are_two_batches() -> None:
    organization_id = books.make_organization()
    assert _accepted(organization_id, key=None).batch_id != _accepted(organization_id, key=None).batch_id
    assert books.counts() == (2, 0)


def test_of_many_sends_with_one_key_at_once_one_is_accepted_and_the_others_find_it() -> None:
    organization_id = books.make_organization()
    _accepted(organization_id, key="another")  # So that the API key is there already.
    outcomes = races.at_once(*[partial(_accept, organization_id)] * 8)
    own = [one for one in outcomes if isinstance(one, Acceptance) and not one.existed]
    assert len(own) == 1
    # Who met the other's uncommitted row was told to ask again, and finds it.
    again = [_accepted(organization_id) if one is None else one for one in outcomes]
    assert {one.batch_id for one in again if isinstance(one, Acceptance)} == {own[0].batch_id}
    assert books.counts() == (2, 0)


@pytest.mark.parametrize("fails", [False, True], ids=["committed", "rolled back"])
def test_a_send_whose_key_is_being_taken_waits_for_what_becomes_of_it(*, fails: bool) -> None:
    organization_id = books.make_organization()
    _accepted(organization_id, key="another")
    with races.started() as start:
        with transaction() as connection:
            [first] = accept(connection, [Send(books.key_of(connection, organization_id), REQUEST, "once")])
            second = start(partial(_accept, organization_id))
            races.until_waiting()
            if fails:
                connection.rollback()
        outcome = second.result(races.PATIENCE_S)
    assert isinstance(first, Acceptance)
    if fails:
        assert isinstance(outcome, Acceptance)
        assert not outcome.existed
    else:
        assert outcome is None
        assert _accepted(organization_id).batch_id == first.batch_id
