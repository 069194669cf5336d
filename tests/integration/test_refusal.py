"""Refusing under the lock: what becomes of a queued batch whose organization may not issue any more."""

import pytest

from app import organizations
from app.batches.accept import Acceptance, Send, accept
from app.batches.request import IssueRequest
from app.postgres.database import transaction
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

ANN = "ann@example.com"

reasons = pytest.mark.parametrize(
    ("is_disabled", "is_suspended", "code"),
    [
        pytest.param(True, False, "organization_disabled", id="disabled"),
        pytest.param(False, True, "organization_suspended", id="suspended"),
        pytest.param(True, True, "organization_disabled", id="disabled wins"),
    ],
)


def _set_flags(organization_id: int, *, is_disabled: bool, is_suspended: bool) -> None:
    with transaction() as connection:
        organizations.set_flags(connection, organization_id, is_disabled=is_disabled, is_suspended=is_suspended)


@reasons
@pytest.mark.parametrize("sandbox", [False, True], ids=["live", "sandbox"])
def test_a_batch_of_an_organization_that_may_not_issue_is_refused_and_writes_nothing(
    *, sandbox: bool, is_disabled: bool, is_suspended: bool, code: str
) -> None:
    organization_id = books.make_organization(100, sandbox_balance=100)
    books.make_users(ANN)
    batch_id = books.queue_batch(organization_id, [ANN], 10, sandbox=sandbox)
    _set_flags(organization_id, is_disabled=is_disabled, is_suspended=is_suspended)
    assert books.drain_all(organization_id) == [batch_id]
    batch, transactions = books.read_batch(organization_id, batch_id, sandbox=sandbox)
    assert (batch.status, batch.refusal, batch.issued_at, transactions) == ("refused", code, None, [])
    assert books.balance_of(organization_id, sandbox=sandbox) == 100
    assert books.balance_of_user(ANN) == 0
    assert books.breaches() == []


def test_every_batch_of_the_drain_is_refused() -> None:
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 10) for _ in range(3)]
    _set_flags(organization_id, is_disabled=False, is_suspended=True)
    assert books.drain_all(organization_id) == queued
    assert [books.read_batch(organization_id, batch_id)[0].status for batch_id in queued] == ["refused"] * 3


def test_a_refused_batch_gives_its_idempotency_key_back() -> None:
    organization_id = books.make_organization(100)
    refused = books.queue_batch(organization_id, [ANN], 10, idempotency_key="once")
    _set_flags(organization_id, is_disabled=False, is_suspended=True)
    books.drain_all(organization_id)
    _set_flags(organization_id, is_disabled=False, is_suspended=False)
    again = books.queue_batch(organization_id, [ANN], 10, idempotency_key="once")
    assert books.drain_all(organization_id) == [again] != [refused]
    assert books.read_batch(organization_id, again)[0].status == "issued"


def test_an_issued_batch_keeps_its_idempotency_key_while_the_organization_is_suspended() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 10, idempotency_key="once")
    books.drain_all(organization_id)
    _set_flags(organization_id, is_disabled=False, is_suspended=True)
    request = IssueRequest(emails=[ANN], email_keys=[ANN], amount=10, atomic=False, label=None)
    with transaction() as connection:
        [found] = accept(connection, [Send(books.key_of(connection, organization_id), request, "once")])
    assert isinstance(found, Acceptance)
    assert found.status == "issued"


def test_a_refused_batch_stays_refused_when_the_organization_may_issue_again() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 10)
    _set_flags(organization_id, is_disabled=True, is_suspended=False)
    books.drain_all(organization_id)
    _set_flags(organization_id, is_disabled=False, is_suspended=False)
    assert books.drain_all(organization_id) == []
    with transaction() as connection:
        assert books.issue(connection, organization_id, only=batch_id) == []
    assert books.read_batch(organization_id, batch_id)[0].status == "refused"
    assert books.balance_of(organization_id) == 100
