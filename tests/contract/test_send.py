"""Send: one transaction per recipient in request order, balances that fall, flags, labels, partial payment."""

from itertools import pairwise

import pytest

from tests.contract.calls import (
    HELD,
    ORGANIZATION,
    PAID,
    TIMESTAMP,
    TRANSACTION,
    UNPAID,
    Organization,
    address,
    addresses,
    flags,
    organization,
    success,
)
from tests.service.up import Service


def test_one_transaction_per_recipient_in_request_order_with_balances_that_fall(service: Service) -> None:
    caller = organization(service, 100).live
    without, with_account, too_late = addresses(3)
    user = service.register(with_account, "Grace", "Hopper")
    answer = caller.send({"recipients": [without, with_account, too_late], "amount": 40})
    data = success(answer, 201)
    batch_id = answer.json()["additional_data"]["batch_id"]
    assert isinstance(batch_id, int)
    assert answer.headers["Location"] == f"/v1/batches/{batch_id}"
    transactions = data["transactions"]
    assert [one["email"] for one in transactions] == [without, with_account, too_late]
    assert [one["organization"]["balance"] for one in transactions] == [60, 20, 20]
    assert (data["amount"], data["current_balance"], caller.balance) == (80, 20, 20)
    assert flags(transactions) == [HELD, PAID, UNPAID]
    recipient = {"id": user["id"], "first_name": "Grace", "last_name": "Hopper"}
    assert [one["recipient"] for one in transactions] == [None, recipient, None]
    # Whose account is known is shown with it, paid or not.
    [unpaid] = success(caller.send({"recipient": with_account, "amount": 40}), 201)["transactions"]
    assert (flags([unpaid]), unpaid["recipient"]) == ([UNPAID], recipient)
    assert service.points_of(with_account) == 40


def test_a_transaction_holds_every_field_of_the_interface(service: Service, acme: Organization) -> None:
    one = success(acme.live.send({"recipient": address(), "amount": 7}), 201)["transactions"][0]
    assert one.keys() >= TRANSACTION
    assert one["organization"].keys() >= ORGANIZATION
    assert isinstance(one["id"], int)
    assert 0 < one["id"] < 2**63
    assert (one["amount"], one["label"], one["sender"], one["sandbox"]) == (7, None, None, False)
    assert TIMESTAMP.match(one["created_at"])
    made = service.json("organizations", "show", str(acme.id))
    assert one["organization"].items() >= {name: made[name] for name in ORGANIZATION}.items()
    assert one["organization"] == success(acme.live.get("/v1/organization"))


def test_a_single_recipient_is_the_same_as_a_list_of_one(acme: Organization) -> None:
    before = acme.live.balance
    data = success(acme.live.send({"recipient": " A.b@Example.com ", "amount": 10}), 201)
    assert [one["email"] for one in data["transactions"]] == ["A.b@Example.com"]
    assert data["current_balance"] == before - 10


def test_the_first_are_paid_as_far_as_the_balance_goes_and_atomic_is_all_or_none(service: Service) -> None:
    caller, balance = organization(service, 140).live, 140
    for number, amount, atomic, paid in (
        (3, 50, True, 0),
        (2, 25, True, 2),
        (4, 30, False, 3),
        (2, 1, False, 0),
        (1, 1, True, 0),
    ):
        body = {"recipients": addresses(number), "amount": amount, "atomic": atomic}
        data = success(caller.send(body), 201)
        assert [one["debited"] for one in data["transactions"]] == [place < paid for place in range(number)]
        balance -= paid * amount
        assert (data["amount"], data["current_balance"]) == (paid * amount, balance)
        assert data["transactions"][-1]["organization"]["balance"] == balance == caller.balance


def test_a_batch_and_each_of_its_transactions_can_be_read_again_as_they_were_answered(acme: Organization) -> None:
    answer = acme.live.send({"recipients": addresses(3), "amount": 2, "label": "again"})
    data, batch_id = success(answer, 201), answer.json()["additional_data"]["batch_id"]
    batch = acme.live.batch(batch_id)
    assert (batch["batch_id"], batch["status"]) == (batch_id, "issued")
    assert all(TIMESTAMP.match(batch[name]) for name in ("created_at", "issued_at"))
    assert batch.items() >= data.items()
    for one in data["transactions"]:
        assert success(acme.live.get(f"/v1/transactions/{one['id']}")) == one


def test_ten_thousand_recipients_in_one_send_are_ten_thousand_transactions_in_order(acme: Organization) -> None:
    before, emails = acme.live.balance, addresses(10_000)
    data = success(acme.live.send({"recipients": emails, "amount": 3}), 201)
    assert [one["email"] for one in data["transactions"]] == emails
    balances = [before, *(one["organization"]["balance"] for one in data["transactions"])]
    assert all(one - other == 3 for one, other in pairwise(balances))
    assert len({one["id"] for one in data["transactions"]}) == 10_000
    assert (data["amount"], data["current_balance"], acme.live.balance) == (30_000, before - 30_000, before - 30_000)


@pytest.mark.parametrize("label", ["a" * 255, "é🎉" * 127, " blanks ", "{}", "<b>"])
def test_a_label_is_kept_to_the_letter_on_every_transaction(acme: Organization, label: str) -> None:
    data = success(acme.live.send({"recipients": addresses(2), "amount": 1, "label": label}), 201)
    assert [one["label"] for one in data["transactions"]] == [label, label]
