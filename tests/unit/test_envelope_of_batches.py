"""Batches and transactions as callers see them: every field of the interface document, flag by flag."""

import json
from typing import Any

import pytest

from app.api.answers import envelope
from app.batches import payloads
from app.batches.read import REFUSED, StateCounts
from tests.unit import rows


def sent(data: dict[str, Any]) -> dict[str, Any]:
    """Return a payload as the caller's program reads it."""
    document: dict[str, Any] = json.loads(envelope.success(data).get_data())
    payload: dict[str, Any] = document["data"]
    return payload


def issued(issue: rows.Issue, *, as_issued: bool = True) -> dict[str, Any]:
    """Return the send result of a batch as it is sent."""
    return sent(payloads.issued_payload(issue.batch, issue.transactions, as_issued=as_issued))


def test_a_transaction_has_every_field_of_the_interface_document() -> None:
    first = issued(rows.issue())["transactions"][0]
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


def test_the_three_flags_and_the_recipient_follow_the_table_of_the_contract() -> None:
    credited, held, unpaid = issued(rows.issue())["transactions"]

    def case(body: dict[str, Any]) -> list[object]:
        return [body["debited"], body["credited"], body["allocated"], body["recipient"] is not None]

    assert case(credited) == [True, True, True, True]
    assert case(held) == [True, False, False, False]
    assert case(unpaid) == [False, False, False, True]


def test_a_transaction_shows_its_own_amount_label_and_reference_or_those_of_its_batch() -> None:
    own = rows.transaction(amount=7, label="its own", reference="4711")
    batch = rows.issued_batch(amount=None, label="of all")
    shown = issued(rows.Issue(batch=batch, transactions=[own, rows.transaction(amount=8)]))["transactions"]
    assert [(body["amount"], body["label"], body["reference"]) for body in shown] == [
        (7, "its own", "4711"),
        (8, "of all", None),
    ]


def test_the_state_says_in_a_word_what_the_flags_say() -> None:
    assert [body["state"] for body in issued(rows.issue())["transactions"]] == ["credited", "held", "unpaid"]


def test_the_email_is_always_filled_next_to_the_recipient() -> None:
    shown = issued(rows.issue())["transactions"]
    assert [body["email"] for body in shown] == ["Ada@example.com", "b@example.com", "c@example.com"]


def test_transactions_keep_their_order_and_each_shows_the_balance_right_after_it() -> None:
    data = issued(rows.issue())
    assert [body["id"] for body in data["transactions"]] == [1001, 1002, 1003]
    assert [body["organization"]["balance"] for body in data["transactions"]] == [40, 10, 10]
    assert data["transactions"][-1]["organization"]["balance"] == data["current_balance"]


def test_the_amount_of_a_batch_is_the_sum_of_its_debited_transactions() -> None:
    data = issued(rows.issue())
    assert list(data) == ["transactions", "amount", "current_balance"]
    assert data["amount"] == sum(body["amount"] for body in data["transactions"] if body["debited"]) == 60


def test_a_batch_that_debited_nobody_amounts_to_zero() -> None:
    unpaid = rows.transaction(debited=False, credited=False, balance=10)
    assert (
        issued(rows.Issue(batch=rows.issued_batch(debited_count=0, debited_amount=0), transactions=[unpaid]))["amount"]
        == 0
    )


@pytest.mark.parametrize(("label", "sandbox"), [("Spring", True), ("", False)])
def test_label_and_mode_of_the_batch_stand_on_every_transaction(*, label: str, sandbox: bool) -> None:
    issue = rows.issue()
    batch = issue.batch._replace(label=label, sandbox=sandbox)
    bodies = issued(rows.Issue(batch=batch, transactions=issue.transactions))["transactions"]
    assert {(body["label"], body["sandbox"]) for body in bodies} == {(label, sandbox)}


@pytest.mark.parametrize("name", ['Ac"me', "Ac\\me", "アクメ", "}{", '","balance":0,"'])
def test_any_name_of_an_organization_comes_through_whole(name: str) -> None:
    batch = rows.issued_batch(organization_name=name)
    [body] = issued(rows.Issue(batch=batch, transactions=[rows.transaction()]))["transactions"]
    assert (body["organization"]["name"], body["organization"]["balance"]) == (name, 40)


def test_the_largest_ids_and_balances_come_through_whole() -> None:
    biggest = 2**63 - 1
    batch = rows.issued_batch(current_balance=biggest, last_refill=biggest, organization_id=biggest)
    data = issued(rows.Issue(batch=batch, transactions=[rows.transaction(id=biggest, balance=biggest)]))
    organization = data["transactions"][0]["organization"]
    assert data["current_balance"] == data["transactions"][0]["id"] == biggest
    assert (organization["id"], organization["balance"], organization["last_refill"]) == (biggest,) * 3


def test_points_claimed_since_are_shown_as_held_to_a_retry_and_as_credited_to_a_look() -> None:
    issue = rows.Issue(batch=rows.issued_batch(), transactions=[rows.transaction(claimed=True)])
    [then] = issued(issue, as_issued=True)["transactions"]
    [now] = issued(issue, as_issued=False)["transactions"]
    assert (then["debited"], then["credited"], then["allocated"], then["recipient"]) == (True, False, False, None)
    assert (now["debited"], now["credited"], now["allocated"]) == (True, True, True)
    assert now["recipient"] == {"id": 5, "first_name": "Ada", "last_name": "Lovelace"}


def test_an_end_is_shown_while_it_is_held_and_to_a_retry_as_it_was_issued() -> None:
    first, later = rows.MOMENT.replace(year=2027), rows.MOMENT.replace(year=2028)
    held: dict[str, Any] = {"credited": False, "user_id": None, "first_name": None, "last_name": None}
    transactions = [
        rows.transaction(**held),
        rows.transaction(**held, held_until=later),
        rows.transaction(claimed=True, held_until=later),
        rows.transaction(**held, points_left=0, returned=True),
        rows.transaction(**held, points_left=0),
        rows.transaction(),
    ]
    issue = rows.Issue(batch=rows.issued_batch(held_until=first), transactions=transactions)
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
    issue = rows.Issue(batch=rows.issued_batch(), transactions=[rows.transaction(claimed=True)])
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
        "counts": {"recipients": 3, "debited": 2, "credited": 1, "held": 1, "unpaid": 1, "reversed": 0},
        "created_at": "2026-01-31T09:30:00.000000Z",
        "send_at": None,
        "issued_at": "2026-01-31T09:30:00.000005Z",
        **issued(issue, as_issued=False),
    }


@pytest.mark.parametrize("status", ["scheduled", "queued", "refused", "cancelled"])
def test_a_batch_that_is_not_issued_shows_null_for_what_an_issue_would_fill(status: str) -> None:
    refusal = "organization_disabled" if status == REFUSED else None
    batch = rows.queued_batch(status=status, refusal=refusal)
    listed = {
        "batch_id": 42,
        "status": status,
        "final": status in ("refused", "cancelled"),
        "refusal": refusal,
        "label": None,
        "metadata": None,
        "idempotency_key": None,
        "api_key_id": 1,
        "sender": None,
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
    batches = [rows.issued_batch(id=number, amount=amount) for number, amount in ((3, 30), (2, 20), (1, 10))]
    listed = [(batch, rows.transaction(id=number)) for number, batch in enumerate([*batches, batches[2]])]
    shown = payloads.transaction_payloads(listed)
    assert [(body["id"], body["amount"]) for body in shown] == [(0, 30), (1, 20), (2, 10), (3, 10)]
