"""Issuing on a real PostgreSQL: what the ledger writes for a queued batch."""

import pytest

from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")


def test_one_transaction_per_recipient_in_request_order() -> None:
    organization_id = books.make_organization(100)
    emails = ["c@example.com", "a@example.com", "b@example.com"]
    batch, transactions = books.read_batch(organization_id, books.issue_now(organization_id, emails, 10))
    assert [row.email for row in transactions] == emails
    assert [row.balance for row in transactions] == [90, 80, 70]
    assert batch.current_balance == 70
    assert books.balance_of(organization_id) == 70
    assert books.breaches() == []
