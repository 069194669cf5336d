"""What callers are shown: errors with their status, moments, batches and transactions field by field."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from flask import Response

from app import errors
from app.api.answers import envelope
from app.batches import payloads
from app.batches.read import ISSUED, QUEUED, REFUSED, BatchRow, TransactionRow
from app.batches.sums import StateCounts
from app.values.timestamps import timestamp

MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Issue:
    """One issued batch and its transactions."""

    batch: BatchRow
    transactions: list[TransactionRow]


def queued_batch(**changes: Any) -> BatchRow:
    """Return a batch of the organization 7 as it is before any worker has seen it."""
    batch = BatchRow(
        id=42,
        organization_id=7,
        sandbox=False,
        status=QUEUED,
        api_key_id=1,
        member_id=None,
        amount=30,
        label=None,
        idempotency_key=None,
        recipient_count=3,
        created_at=MOMENT,
        send_at=None,
        refusal=None,
        issued_at=None,
        debited_count=None,
        debited_amount=None,
        current_balance=None,
        organization_name=None,
        last_refill=None,
        held_until=None,
        organization_created_at=MOMENT,
        sender=None,
        approval=None,
    )
    return batch._replace(**changes)


def issued_batch(**changes: Any) -> BatchRow:
    """Return a batch that two of three recipients were debited for; the balance was 70 before it."""
    fields: dict[str, Any] = {
        "status": ISSUED,
        "issued_at": MOMENT.replace(microsecond=5),
        "debited_count": 2,
        "debited_amount": 60,
        "current_balance": 10,
        "organization_name": "Acme",
        "last_refill": 500,
    }
    return queued_batch(**(fields | changes))


def transaction(**changes: Any) -> TransactionRow:
    """Return a transaction that was credited to a user."""
    row = TransactionRow(
        id=1001,
        email="Ada@example.com",
        balance=40,
        debited=True,
        credited=True,
        claimed=False,
        amount=None,
        label=None,
        reference=None,
        points_left=None,
        held_until=None,
        returned=False,
        user_id=5,
        first_name="Ada",
        last_name="Lovelace",
    )
    return row._replace(**changes)


def issue() -> Issue:
    """Return a batch with one transaction of each case: credited, held, and not paid for."""
    nobody: dict[str, Any] = {"credited": False, "user_id": None, "first_name": None, "last_name": None}
    return Issue(
        batch=issued_batch(),
        transactions=[
            transaction(),
            transaction(id=1002, email="b@example.com", balance=10, **nobody),
            transaction(id=1003, email="c@example.com", balance=10, debited=False, credited=False, user_id=6),
        ],
    )


def document_of(response: Response) -> dict[str, Any]:
    """Return an answer as the caller's program reads it, its keys in the order they were sent."""
    document: dict[str, Any] = json.loads(response.get_data())
    return document


@pytest.mark.parametrize(
    ("error", "status", "field"),
    [
        (errors.InvalidRequest({"amount": ["Wrong."]}), 400, "amount"),
        (errors.InvalidKey(), 401, "authorization"),
        (errors.OrganizationDisabled(), 403, "organization"),
        (errors.OrganizationSuspended(), 403, "organization"),
        (errors.NotFound("batch", 7), 404, "batch"),
        (errors.IdempotencyKeyReused(), 422, "idempotency_key"),
    ],
)
def test_each_expected_error_has_its_status_and_its_field(error: errors.PointsError, status: int, field: str) -> None:
    response = envelope.failure_of(error)
    assert response.status_code == status
    assert list(document_of(response)["errors"]) == [field]
    assert response.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)


def test_an_error_without_a_status_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="The error Forgotten has no status"):
        type("Forgotten", (errors.PointsError,), {})


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 31, 9, 30, tzinfo=UTC), "2026-01-31T09:30:00.000000Z"),
        (datetime(2026, 12, 1, 23, 59, 59, 120, tzinfo=UTC), "2026-12-01T23:59:59.000120Z"),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2025-12-31T23:00:00.000000Z"),
    ],
    ids=["zeros", "microseconds", "another zone"],
)
def test_a_moment_is_written_in_utc_with_six_decimals_and_z(moment: datetime, text: str) -> None:
    assert timestamp(moment) == text


def sent(data: dict[str, Any]) -> dict[str, Any]:
    """Return a payload as the caller's program reads it."""
    document: dict[str, Any] = json.loads(envelope.success(data).get_data())
    payload: dict[str, Any] = document["data"]
    return payload


def issued(issue: Issue, *, as_issued: bool = True) -> dict[str, Any]:
    """Return the send result of a batch as it is sent."""
    return sent(payloads.issued_payload(issue.batch, issue.transactions, as_issued=as_issued))


def test_a_transaction_has_every_field_of_the_interface_document() -> None:
    first = issued(issue())["transactions"][0]
    assert first == {
        "id": 1001,
        "organization": {
            "id": 7,
            "name": "Acme",
            "is_disabled": False,
            "is_suspended": False,
            "balance": 40,
            "last_refill": 500,
            "created_at": "2026-01-31T09:30:00.000000Z",
        },
        "recipient": {"id": 5, "first_name": "Ada", "last_name": "Lovelace"},
        "email": "Ada@example.com",
        "amount": 30,
        "debited": True,
        "credited": True,
        "allocated": True,
        "sender": None,
        "label": None,
        "reference": None,
        "reversed": 0,
        "held_until": None,
        "state": "credited",
        "sandbox": False,
        "created_at": "2026-01-31T09:30:00.000005Z",
    }


def test_a_transaction_shows_its_own_amount_label_and_reference_or_those_of_its_batch() -> None:
    own = transaction(amount=7, label="its own", reference="4711")
    batch = issued_batch(amount=None, label="of all")
    shown = issued(Issue(batch=batch, transactions=[own, transaction(amount=8)]))["transactions"]
    assert [(body["amount"], body["label"], body["reference"]) for body in shown] == [
        (7, "its own", "4711"),
        (8, "of all", None),
    ]


@pytest.mark.parametrize("name", ['Ac"me', "Ac\\me", "アクメ", "}{", '","balance":0,"'])
def test_any_name_of_an_organization_comes_through_whole(name: str) -> None:
    batch = issued_batch(organization_name=name)
    [body] = issued(Issue(batch=batch, transactions=[transaction()]))["transactions"]
    assert (body["organization"]["name"], body["organization"]["balance"]) == (name, 40)


def test_the_largest_ids_and_balances_come_through_whole() -> None:
    biggest = 2**63 - 1
    batch = issued_batch(current_balance=biggest, last_refill=biggest, organization_id=biggest)
    data = issued(Issue(batch=batch, transactions=[transaction(id=biggest, balance=biggest)]))
    organization = data["transactions"][0]["organization"]
    assert data["current_balance"] == data["transactions"][0]["id"] == biggest
    assert (organization["id"], organization["balance"], organization["last_refill"]) == (biggest,) * 3


def test_points_claimed_since_are_shown_as_held_to_a_retry_and_as_credited_to_a_look() -> None:
    issue = Issue(batch=issued_batch(), transactions=[transaction(claimed=True)])
    [then] = issued(issue, as_issued=True)["transactions"]
    [now] = issued(issue, as_issued=False)["transactions"]
    assert (then["debited"], then["credited"], then["allocated"], then["recipient"]) == (True, False, False, None)
    assert (now["debited"], now["credited"], now["allocated"]) == (True, True, True)
    assert now["recipient"] == {"id": 5, "first_name": "Ada", "last_name": "Lovelace"}


def test_an_end_is_shown_while_it_is_held_and_to_a_retry_as_it_was_issued() -> None:
    first, later = MOMENT.replace(year=2027), MOMENT.replace(year=2028)
    held: dict[str, Any] = {"credited": False, "user_id": None, "first_name": None, "last_name": None}
    transactions = [
        transaction(**held),
        transaction(**held, held_until=later),
        transaction(claimed=True, held_until=later),
        transaction(**held, points_left=0, returned=True),
        transaction(**held, points_left=0),
        transaction(),
    ]
    issue = Issue(batch=issued_batch(held_until=first), transactions=transactions)
    then, now = (issued(issue, as_issued=as_issued)["transactions"] for as_issued in (True, False))
    at_first, extended = "2027-01-31T09:30:00.000000Z", "2028-01-31T09:30:00.000000Z"
    assert [(row["state"], row["held_until"]) for row in then] == [*[("held", at_first)] * 5, ("credited", None)]
    assert [(row["state"], row["held_until"]) for row in now] == [
        ("held", at_first),
        ("held", extended),
        ("credited", None),
        ("returned", None),
        ("reversed", None),
        ("credited", None),
    ]


def test_an_issued_batch_shows_its_send_result_as_it_is_now() -> None:
    issue = Issue(batch=issued_batch(), transactions=[transaction(claimed=True)])
    assert sent(payloads.whole_batch_payload(issue.batch, issue.transactions, metadata={"run": "7"})) == {
        "batch_id": 42,
        "status": "issued",
        "final": True,
        "refusal": None,
        "label": None,
        "metadata": {"run": "7"},
        "idempotency_key": None,
        "api_key_id": 1,
        "sender": None,
        "approval": None,
        "counts": {"recipients": 3, "debited": 2, "credited": 1, "held": 1, "unpaid": 1, "reversed": 0},
        "created_at": "2026-01-31T09:30:00.000000Z",
        "send_at": None,
        "issued_at": "2026-01-31T09:30:00.000005Z",
        **issued(issue, as_issued=False),
    }


@pytest.mark.parametrize("status", ["awaiting_approval", "scheduled", "queued", "refused", "cancelled", "rejected"])
def test_a_batch_that_is_not_issued_shows_null_for_what_an_issue_would_fill(status: str) -> None:
    refusal = "organization_disabled" if status == REFUSED else None
    batch = queued_batch(status=status, refusal=refusal)
    listed = {
        "batch_id": 42,
        "status": status,
        "final": status in ("refused", "cancelled", "rejected"),
        "refusal": refusal,
        "label": None,
        "metadata": None,
        "idempotency_key": None,
        "api_key_id": 1,
        "sender": None,
        "approval": None,
        "counts": None,
        "created_at": "2026-01-31T09:30:00.000000Z",
        "send_at": None,
        "issued_at": None,
        "amount": None,
        "current_balance": None,
    }
    assert sent(payloads.listed_batch_payload(batch, states=StateCounts(), metadata=None)) == listed
    assert sent(payloads.whole_batch_payload(batch, [], metadata=None)) == listed | {"transactions": None}


def test_each_transaction_of_a_list_shows_the_batch_that_it_comes_with() -> None:
    batches = [issued_batch(id=number, amount=amount) for number, amount in ((3, 30), (2, 20), (1, 10))]
    listed = [(batch, transaction(id=number)) for number, batch in enumerate([*batches, batches[2]])]
    shown = payloads.transaction_payloads(listed)
    assert [(body["id"], body["amount"]) for body in shown] == [(0, 30), (1, 20), (2, 10), (3, 10)]
