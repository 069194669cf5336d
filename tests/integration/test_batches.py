"""The rows of batches: accepted under a key once, found by their own organization and mode alone."""

from dataclasses import replace
from functools import partial

import pytest

from app import batches
from app.acceptance import Acceptance, IssueRequest
from app.database import transaction
from app.errors import IdempotencyKeyReused
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"
REQUEST = IssueRequest(emails=[ANN, BOB], email_keys=[ANN, BOB], amount=10, atomic=False, label="Spring")


def _accept(
    organization_id: int, request: IssueRequest = REQUEST, *, sandbox: bool = False, key: str | None = "once"
) -> int | None:
    with transaction() as connection:
        return batches.accept(connection, organization_id, request, sandbox=sandbox, idempotency_key=key)


def _find_by_key(
    organization_id: int, request: IssueRequest = REQUEST, *, sandbox: bool = False, key: str = "once"
) -> Acceptance | None:
    with transaction() as connection:
        return batches.find_by_idempotency_key(
            connection, organization_id, request, sandbox=sandbox, idempotency_key=key
        )


def test_an_accepted_batch_is_queued_as_it_was_asked_for() -> None:
    organization_id = books.make_organization()
    emails = ["Bob@Example.com", ANN]
    request = IssueRequest(emails=emails, email_keys=[BOB, ANN], amount=7, atomic=True, label=None)
    batch_id = _accept(organization_id, request, key=None)
    assert batch_id is not None
    batch, transactions = books.read_batch(organization_id, batch_id)
    assert (batch.status, batch.amount, batch.label, batch.issued_at) == ("queued", 7, None, None)
    assert transactions == []
    books.drain_all(organization_id)
    assert [row.email for row in books.read_batch(organization_id, batch_id)[1]] == emails


@pytest.mark.parametrize("sandbox", [False, True], ids=["live", "sandbox"])
def test_a_batch_is_found_by_its_own_organization_and_mode_alone(*, sandbox: bool) -> None:
    mine, other = books.make_organization(), books.make_organization()
    batch_id = _accept(mine, sandbox=sandbox)
    assert batch_id is not None
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
    batch_id = _accept(organization_id)
    assert batch_id is not None
    assert _find_by_key(organization_id) == Acceptance(batch_id=batch_id, status="queued", existed=True)
    books.drain_all(organization_id)
    assert _find_by_key(organization_id) == Acceptance(batch_id=batch_id, status="issued", existed=True)


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
    _accept(organization_id)
    with pytest.raises(IdempotencyKeyReused):
        _find_by_key(organization_id, other)


def test_a_key_counts_for_its_organization_and_mode_alone() -> None:
    mine, other = books.make_organization(), books.make_organization()
    accepted = [_accept(mine), _accept(mine, sandbox=True), _accept(other), _accept(mine, key="twice")]
    assert len(set(accepted)) == 4
    assert None not in accepted
    assert _find_by_key(other, key="twice") is None
    assert _find_by_key(mine, sandbox=True, key="twice") is None


def test_a_key_that_is_taken_accepts_nothing() -> None:
    organization_id = books.make_organization()
    assert _accept(organization_id) is not None
    assert _accept(organization_id) is None
    assert _accept(organization_id, replace(REQUEST, amount=11)) is None
    assert books.counts() == (1, 0)


def test_without_a_key_two_equal_sends_are_two_batches() -> None:
    organization_id = books.make_organization()
    assert None not in {_accept(organization_id, key=None), _accept(organization_id, key=None)}
    assert books.counts() == (2, 0)


def test_of_many_sends_with_one_key_at_once_one_is_accepted_and_the_others_find_it() -> None:
    organization_id = books.make_organization()
    accepted = races.at_once(*[partial(_accept, organization_id)] * 8)
    [batch_id] = [accepted_id for accepted_id in accepted if accepted_id is not None]
    assert _find_by_key(organization_id) == Acceptance(batch_id=batch_id, status="queued", existed=True)
    assert books.counts() == (1, 0)


def test_a_send_whose_key_is_being_taken_waits_and_then_finds_the_batch() -> None:
    organization_id = books.make_organization()
    with races.started() as start:
        with transaction() as connection:
            first = batches.accept(connection, organization_id, REQUEST, sandbox=False, idempotency_key="once")
            second = start(partial(_accept, organization_id))
            races.until_waiting()
        assert second.result(races.PATIENCE_S) is None
    found = _find_by_key(organization_id)
    assert found is not None
    assert found.batch_id == first


def test_a_send_whose_key_was_being_taken_by_one_that_failed_is_accepted() -> None:
    organization_id = books.make_organization()
    with races.started() as start:
        with transaction() as connection:
            batches.accept(connection, organization_id, REQUEST, sandbox=False, idempotency_key="once")
            second = start(partial(_accept, organization_id))
            races.until_waiting()
            connection.rollback()
        assert second.result(races.PATIENCE_S) is not None
