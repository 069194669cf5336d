"""Send over HTTP: from the request through a real worker to the 201."""

import re
import uuid

from tests.deadline import until
from tests.e2e.conftest import Service

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")


def _address() -> str:
    """Return an address that no other test uses, since users belong to no organization."""
    return f"{uuid.uuid4().hex}@example.com"


def test_send_answers_201_with_one_transaction_per_recipient_in_request_order(service: Service) -> None:
    caller = service.organization(100, name="Zeta & Söhne")
    with_account, without, too_late = _address(), _address(), _address()
    user = service.points_json("users", "create", with_account, "Ada", "Lovelace")
    answer = service.send(
        caller.live, {"recipients": [without, with_account, too_late], "amount": 40, "label": "Spring 2026"}
    )
    assert answer.status_code == 201
    document = answer.json()
    assert document["success"] is True
    assert document["errors"] is None
    assert document["additional_data"]["version"] == "1.0"
    assert isinstance(document["additional_data"]["batch_id"], int)
    data = document["data"]
    assert (data["amount"], data["current_balance"]) == (80, 20)
    assert [entry["email"] for entry in data["transactions"]] == [without, with_account, too_late]
    assert [entry["organization"]["balance"] for entry in data["transactions"]] == [60, 20, 20]
    flags = [(entry["debited"], entry["credited"], entry["allocated"]) for entry in data["transactions"]]
    assert flags == [(True, False, False), (True, True, True), (False, False, False)]
    recipient = {"id": user["id"], "first_name": "Ada", "last_name": "Lovelace"}
    assert [entry["recipient"] for entry in data["transactions"]] == [None, recipient, None]
    first = data["transactions"][0]
    assert list(first) == [
        *("id", "organization", "recipient", "email", "amount", "debited", "credited", "allocated"),
        *("sender", "label", "sandbox", "created_at"),
    ]
    assert list(first["organization"]) == [
        *("id", "name", "is_disabled", "is_suspended", "balance", "last_refill", "created_at"),
    ]
    assert (first["sender"], first["label"], first["sandbox"], first["amount"]) == (None, "Spring 2026", False, 40)
    assert (first["organization"]["name"], first["organization"]["last_refill"]) == ("Zeta & Söhne", 100)
    assert _TIMESTAMP.match(first["created_at"])
    assert _TIMESTAMP.match(first["organization"]["created_at"])
    assert service.points_json("users", "show", with_account)["balance"] == 40
    assert service.balance(caller.live) == 20


def test_a_single_recipient_is_the_same_as_a_list_of_one(service: Service) -> None:
    caller = service.organization(10)
    data = service.send(caller.live, {"recipient": " A.b@Example.com ", "amount": 10}).json()["data"]
    assert [entry["email"] for entry in data["transactions"]] == ["A.b@Example.com"]
    assert data["transactions"][0]["label"] is None


def test_an_atomic_batch_that_cannot_be_paid_whole_debits_nobody_and_is_still_201(service: Service) -> None:
    caller = service.organization(30)
    answer = service.send(caller.live, {"recipients": [_address(), _address()], "amount": 20, "atomic": True})
    assert answer.status_code == 201
    data = answer.json()["data"]
    assert (data["amount"], data["current_balance"]) == (0, 30)
    assert [entry["debited"] for entry in data["transactions"]] == [False, False]


def test_held_points_are_credited_on_the_same_transaction_when_an_account_is_registered(service: Service) -> None:
    caller = service.organization(100)
    address = _address()
    sent = service.send(caller.live, {"recipient": address.upper(), "amount": 60}).json()
    batch_id = sent["additional_data"]["batch_id"]
    user = service.points_json("users", "create", address, "Grace", "Hopper")
    assert user["balance"] == 60
    shown = service.call("GET", f"/v1/batches/{batch_id}", key=caller.live).json()["data"]["transactions"]
    assert [entry["id"] for entry in shown] == [entry["id"] for entry in sent["data"]["transactions"]]
    assert (shown[0]["debited"], shown[0]["credited"], shown[0]["allocated"]) == (True, True, True)
    assert shown[0]["recipient"] == {"id": user["id"], "first_name": "Grace", "last_name": "Hopper"}
    assert service.balance(caller.live) == 40


def test_a_development_key_issues_in_the_sandbox_and_nothing_live_changes(service: Service) -> None:
    caller = service.organization(100, sandbox_balance=50)
    with_account, later = _address(), _address()
    service.points("users", "create", with_account, "Ada", "Lovelace")
    data = service.send(caller.development, {"recipients": [with_account, later], "amount": 20}).json()["data"]
    assert [entry["sandbox"] for entry in data["transactions"]] == [True, True]
    assert [entry["credited"] for entry in data["transactions"]] == [True, False]
    assert data["current_balance"] == 10
    assert data["transactions"][0]["organization"]["last_refill"] == 50
    assert service.balance(caller.live) == 100
    assert service.points_json("users", "show", with_account)["balance"] == 0
    assert service.points_json("users", "create", later, "Late", "Comer")["balance"] == 0


def test_a_batch_can_be_read_again_and_equals_its_201(service: Service) -> None:
    caller = service.organization(100)
    sent = service.send(caller.live, {"recipients": [_address(), _address()], "amount": 1}).json()
    batch = service.call("GET", f"/v1/batches/{sent['additional_data']['batch_id']}", key=caller.live).json()["data"]
    assert batch["status"] == "issued"
    assert _TIMESTAMP.match(batch["created_at"])
    assert _TIMESTAMP.match(batch["issued_at"])
    assert {name: batch[name] for name in sent["data"]} == sent["data"]


def test_respond_async_answers_202_at_once_and_the_batch_is_issued(service: Service) -> None:
    caller = service.organization(100)
    answer = service.send(caller.live, {"recipient": _address(), "amount": 1}, Prefer="respond-async")
    assert answer.status_code == 202
    batch_id = answer.json()["data"]["batch_id"]
    assert answer.json()["data"] == {"batch_id": batch_id, "status": "queued"}
    assert answer.headers["Location"] == f"/v1/batches/{batch_id}"
    assert int(answer.headers["Retry-After"]) >= 1

    def is_issued() -> bool:
        batch = service.call("GET", answer.headers["Location"], key=caller.live).json()["data"]
        assert batch["status"] == "issued" or (batch["transactions"], batch["issued_at"]) == (None, None)
        return bool(batch["status"] == "issued")

    until(is_issued, within_s=30)


def test_ten_thousand_recipients_in_one_send_are_ten_thousand_transactions_in_order(service: Service) -> None:
    caller = service.organization(20_000)
    emails = [f"{number}.{uuid.uuid4().hex}@example.com" for number in range(10_000)]
    answer = service.send(caller.live, {"recipients": emails, "amount": 2})
    assert answer.status_code == 201
    transactions = answer.json()["data"]["transactions"]
    assert [entry["email"] for entry in transactions] == emails
    assert [entry["organization"]["balance"] for entry in transactions] == list(range(19_998, -1, -2))
    assert len({entry["id"] for entry in transactions}) == 10_000
