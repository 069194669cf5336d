"""Items: each recipient with an amount, a label and a reference of its own."""

import uuid
from typing import Any

import pytest

from tests.contract.calls import (
    HELD,
    PAID,
    UNPAID,
    Organization,
    address,
    addresses,
    flags,
    nothing_changes,
    organization,
    refusal,
    success,
)
from tests.service.up import Service

_FAR_END = 2**63 - 1


def _items(*amounts: int) -> list[dict[str, Any]]:
    return [{"email": address(), "amount": amount} for amount in amounts]


def _amounts(data: dict[str, Any]) -> list[tuple[int, bool]]:
    return [(one["amount"], one["debited"]) for one in data["transactions"]]


def test_each_item_is_paid_its_own_amount_in_request_order(service: Service) -> None:
    made, paid, held = organization(service, 100), address(), address()
    service.register(paid)
    items = [
        {"email": paid, "amount": 30, "label": "its own", "reference": "order-1"},
        {"email": held, "amount": 25, "reference": "Bestellung-Ü"},
        {"email": address()},
    ]
    answer = made.live.send({"items": items, "amount": 7, "label": "of all"})
    data = success(answer, 201)
    assert flags(data["transactions"]) == [PAID, HELD, HELD]
    assert _amounts(data) == [(30, True), (25, True), (7, True)]
    shown = [(one["label"], one["reference"], one["state"], one["reversed"]) for one in data["transactions"]]
    assert shown == [
        ("its own", "order-1", "credited", 0),
        ("of all", "Bestellung-Ü", "held", 0),
        ("of all", None, "held", 0),
    ]
    assert [one["organization"]["balance"] for one in data["transactions"]] == [70, 45, 38]
    assert (data["amount"], data["current_balance"], made.live.balance) == (62, 38, 38)
    assert service.points_of(paid) == 30
    assert service.register(held)["balance"] == 25
    batch = made.live.batch(answer.json()["additional_data"]["batch_id"])
    assert (batch["label"], batch["amount"]) == ("of all", 62)
    assert batch["counts"] == {"recipients": 3, "debited": 3, "credited": 2, "held": 1, "unpaid": 0, "reversed": 0}


@pytest.mark.parametrize("mode", ["live", "development"])
def test_the_first_item_that_the_balance_cannot_pay_ends_the_paying(service: Service, mode: str) -> None:
    key = getattr(organization(service, 60, sandbox_balance=60), mode)
    body = {"items": _items(50, 20, 10)}
    answer = key.verify(body)
    assert success(answer)["validated"] is False
    beside = answer.json()["additional_data"]
    assert (beside["code"], beside["required"], beside["affordable_recipients"]) == ("insufficient_balance", 80, 1)
    assert _amounts(success(key.send(body | {"atomic": True}), 201)) == [(50, False), (20, False), (10, False)]
    data = success(key.send(body), 201)
    assert _amounts(data) == [(50, True), (20, False), (10, False)]
    assert flags(data["transactions"])[1:] == [UNPAID, UNPAID]
    assert [one["state"] for one in data["transactions"]] == ["held", "unpaid", "unpaid"]
    assert (data["amount"], data["current_balance"]) == (50, 10)


def test_amounts_at_the_far_end_of_64_bits_are_counted_to_the_point(narrow: Service) -> None:
    key = organization(narrow, _FAR_END).live
    # `narrow` allows 2**62 for each.
    over = key.verify({"items": _items(2**62, 2**62)})
    assert "9223372036854775807" in refusal(over, 400, "items")["items"][0]
    data = success(key.send({"items": _items(2**62, 2**62 - 3, 1)}), 201)
    assert (data["amount"], data["current_balance"]) == (_FAR_END - 1, 1)
    assert _amounts(success(key.send({"items": _items(2, 1)}), 201)) == [(2, False), (1, False)]


@pytest.mark.parametrize(
    ("items", "faults"),
    [
        pytest.param("x", {"items": "must be an array of objects"}, id="no array"),
        pytest.param(["x", {"email": "a@example.com"}], {"items.0": "must be an object"}, id="no object"),
        pytest.param([{}], {"items.0.email": "required"}, id="nothing in it"),
        pytest.param([{"email": "a@b"}], {"items.0.email": "must be an e-mail address"}, id="no address"),
        pytest.param([{"email": 7}], {"items.0.email": "must be a string"}, id="no text"),
        pytest.param([{"email": "a@example.com", "amount": 0}], {"items.0.amount": "is 0"}, id="no points"),
        pytest.param([{"email": "a@example.com", "amount": 1.0}], {"items.0.amount": "integer"}, id="a fraction"),
        pytest.param([{"email": "a@example.com", "amount": True}], {"items.0.amount": "integer"}, id="a boolean"),
        pytest.param([{"email": "a@example.com", "label": "x" * 256}], {"items.0.label": "256"}, id="a long label"),
        pytest.param(
            [{"email": "a@example.com", "reference": "x" * 129}], {"items.0.reference": "129"}, id="a long reference"
        ),
        pytest.param(
            [{"email": "a@example.com", "reference": "a b"}], {"items.0.reference": "visible"}, id="a blank in it"
        ),
        pytest.param(
            [{"email": "a@example.com", "reference": 4711}], {"items.0.reference": "string"}, id="a reference in digits"
        ),
        pytest.param(
            [{"email": "a@example.com", "referenc": "1"}], {"items.0.referenc": "mean reference?"}, id="misspelt"
        ),
        pytest.param(
            [{"email": "a@example.com"}, {"email": "b@example.com"}, {"email": "A@example.com", "reference": "1"}],
            {"items.2.email": "items.0.email"},
            id="an address twice, one without a reference",
        ),
        pytest.param(
            [{"email": "a@example.com", "reference": "1"}, {"email": "b@example.com", "reference": "1"}],
            {"items.1.reference": "items.0.reference"},
            id="a reference twice",
        ),
    ],
)
def test_a_fault_of_an_item_is_named_by_its_place(acme: Organization, items: Any, faults: dict[str, str]) -> None:
    with nothing_changes(acme.live):
        for call in (acme.live.verify, acme.live.send):
            errors = refusal(call({"items": items, "amount": 5}), 400, *faults)
            assert all(part in errors[field][0] for field, part in faults.items())


def test_all_faults_come_in_one_answer_with_those_of_the_control_totals(acme: Organization) -> None:
    items = [{"email": "a@example.com", "amount": 3}, {"email": "nonsense"}, {"email": "c@example.com", "amount": "4"}]
    body = {"items": items, "atomic": 1, "expect": {"recipients": 4}, "metadata": {"a": 1}, "lable": "x"}
    errors = refusal(
        acme.live.send(body),
        400,
        *("items.1.email", "items.1.amount", "items.2.amount", "atomic", "expect", "metadata", "lable"),
    )
    assert "neither the item nor the body" in errors["items.1.amount"][0]
    assert "4" in errors["expect"][0]
    assert "3" in errors["expect"][0]


def test_the_first_hundred_items_at_fault_are_listed_and_the_rest_counted(acme: Organization) -> None:
    items = [{"email": "nonsense", "amount": 0, "colour": "red"}] * 103
    named = [f"items.{place}.{field}" for place in range(100) for field in ("email", "amount", "colour")]
    errors = refusal(acme.live.send({"items": items}), 400, *named, "items")
    assert errors["items"] == ["3 more entries are at fault."]


def test_one_of_recipient_recipients_and_items_is_sent(acme: Organization) -> None:
    items, one = _items(5), address()
    refusal(acme.live.send({"items": items, "recipient": one}), 400, "items", "recipient")
    refusal(acme.live.send({"items": items, "recipients": [one], "amount": 1}), 400, "items", "recipients")
    nothing: tuple[Any, ...] = (None, "", [])
    for missing in nothing:
        errors = refusal(acme.live.send({"items": missing}), 400, "amount", "recipient", "recipients")
        assert errors == refusal(acme.live.send({}), 400, "amount", "recipient", "recipients")
        success(acme.live.verify({"items": items, "recipient": missing, "recipients": missing, "amount": missing}))


def test_the_same_address_may_come_twice_where_both_have_a_reference(service: Service) -> None:
    made, email = organization(service, 100), address()
    service.register(email)
    items = [{"email": email, "amount": 3, "reference": "a"}, {"email": email.upper(), "amount": 4, "reference": "b"}]
    data = success(made.live.send({"items": items}), 201)
    assert flags(data["transactions"]) == [PAID, PAID]
    assert service.points_of(email) == 7


def test_a_replay_compares_the_items_by_meaning(service: Service) -> None:
    made, key = organization(service, 100), uuid.uuid4().hex
    first, second = addresses(2)
    short = {"items": [{"email": first}, {"email": second, "amount": 4}], "amount": 3, "label": "x"}
    spelled_out: dict[str, Any] = {
        "items": [
            {"email": first.upper(), "amount": 3, "label": "x", "reference": None},
            {"email": f" {second}", "amount": 4, "label": ""},
        ],
        "amount": 3,
        "label": "x",
        "atomic": False,
        "metadata": None,
        "expect": {"recipients": 2, "amount": 7},
    }
    answer = made.live.send(short, Idempotency_Key=key)
    moved = {"items": [{**one, "label": "x"} for one in spelled_out["items"]]}  # No default is left in the body.
    for same in (spelled_out, moved):
        again = made.live.send(same, Idempotency_Key=key)
        assert success(again, 201) == success(answer, 201)
        assert again.headers["Idempotency-Replayed"] == "true"
    one, two = spelled_out["items"]
    for other in (
        {"items": [two, one]},
        {"items": [one | {"amount": 4}, two]},
        {"items": [one | {"label": "y"}, two]},
        {"label": "y"},
        {"items": [one | {"reference": "r"}, two]},
        {"metadata": {"run": "1"}},
        {"atomic": True},
    ):
        refusal(made.live.send(spelled_out | {"expect": None} | other, Idempotency_Key=key), 422, "idempotency_key")
    assert made.live.balance == 93


def test_what_became_of_an_order_is_found_by_its_reference(service: Service) -> None:
    made, other = organization(service, 100, sandbox_balance=50), organization(service, 100)
    reference, email = f"order-{uuid.uuid4().hex}", address()
    item = {"email": email, "amount": 2, "reference": reference}
    for amount in (1, 2, 3):
        success(made.live.send({"items": [item | {"amount": amount}, *_items(1)]}), 201)
    success(made.development.send({"items": [item]}), 201)
    success(other.live.send({"items": [item]}), 201)
    found = made.live.listed("transactions", reference=reference)
    assert [one["amount"] for one in found] == [3, 2, 1]
    assert [one["amount"] for one in made.live.listed("transactions", reference=reference, limit=1)] == [3, 2, 1]
    assert {one["reference"] for one in found} == {reference}
    assert made.live.listed("transactions", reference=reference, email=address()) == []
    assert made.live.listed("transactions", reference=reference, email=email) == found
    assert made.live.listed("transactions", reference=reference, state="credited") == []
    assert made.live.listed("transactions", reference=reference, created_to=found[1]["created_at"]) == found[1:]
    batch_id = found[0]["id"] // 131_072
    assert made.live.listed("transactions", reference=reference, batch=batch_id) == found[:1]
    [sandbox] = made.development.listed("transactions", reference=reference)
    assert sandbox["sandbox"] is True
    assert made.live.listed("transactions", reference="no-such-order") == []


def test_a_list_is_filtered_by_state(service: Service) -> None:
    made, paid = organization(service, 12), address()
    service.register(paid)
    success(made.live.send({"items": [{"email": paid, "amount": 5}, *_items(7, 1)]}), 201)
    for state, amounts in {"credited": [5], "held": [7], "unpaid": [1], "reversed": [], "returned": []}.items():
        assert [one["amount"] for one in made.live.listed("transactions", state=state)] == amounts
        assert {one["state"] for one in made.live.listed("transactions", state=state)} <= {state}
    assert made.live.listed("transactions", state="held", credited="true") == []
    assert made.live.listed("transactions", state="unpaid", email=paid) == []
    for name in ("state", "reference"):
        for value in ("", "a b"):
            refusal(made.live.get(f"/v1/transactions?{name}={value}"), 400, name)
        refusal(made.live.get(f"/v1/transactions?{name}=held&{name}=held"), 400, name)
        refusal(made.live.get(f"/v1/batches?{name}=held"), 400, name)


@pytest.mark.parametrize(
    ("expect", "seen"),
    [
        ({"recipients": 3}, ("3", "2")),
        ({"amount": 11}, ("11", "10")),
        ({"recipients": 2, "amount": 9}, ("9", "10")),
        ({"recipients": "2"}, ("integer", "a string")),
        ({"amount": 10.0}, ("integer",)),
        ({"amount": True}, ("integer",)),
        ({"recipient": 2}, ("mean recipients?",)),
        ({}, ("empty",)),
        ([2], ("array",)),
        ("", ("a string",)),
        ([], ("array",)),
        (7, ("integer",)),
    ],
    ids=str,
)
def test_control_totals_that_differ_write_nothing(acme: Organization, expect: Any, seen: tuple[str, ...]) -> None:
    uniform = {"recipients": addresses(2), "amount": 5}
    with nothing_changes(acme.live):
        for body in (uniform, {"items": _items(4, 6)}):
            for call in (acme.live.verify, acme.live.send):
                [sentence] = refusal(call(body | {"expect": expect}), 400, "expect")["expect"]
                assert all(part in sentence for part in seen)


def test_control_totals_that_agree_change_nothing(acme: Organization) -> None:
    for expect in ({"recipients": 2}, {"amount": 10}, {"recipients": 2, "amount": 10}, {"amount": None}, None):
        for body in ({"recipients": addresses(2), "amount": 5}, {"items": _items(4, 6)}):
            success(acme.live.send(body | {"expect": expect}), 201)


def test_metadata_is_shown_on_the_batch_and_never_on_its_transactions(acme: Organization) -> None:
    metadata = {"zz": "", "run": "2026-01", "a" * 40: "x" * 500, "Ü": "ö"}
    answer = acme.live.send({"recipient": address(), "amount": 1, "metadata": metadata})
    assert "metadata" not in success(answer, 201)["transactions"][0]
    batch = acme.live.batch(answer.json()["additional_data"]["batch_id"])
    assert list(batch["metadata"].items()) == list(metadata.items())
    [listed] = success(acme.live.get("/v1/batches", limit=1))["batches"]
    assert listed["metadata"] == metadata
    plain = acme.live.send({"recipient": address(), "amount": 1, "metadata": None}).json()["additional_data"][
        "batch_id"
    ]
    assert acme.live.batch(plain)["metadata"] is None


@pytest.mark.parametrize(
    "metadata",
    [
        {str(number): "x" for number in range(21)},
        {"a" * 41: "x"},
        {"": "x"},
        {"a": "x" * 501},
        {"a": 1},
        {"a": None},
        {"a": {"b": "c"}},
        {"a": "\0"},
        ["a"],
        "a",
        {},
        "",
        [],
    ],
    ids=lambda value: str(value)[:20],
)
def test_metadata_beyond_its_limits_are_a_fault(acme: Organization, metadata: Any) -> None:
    refusal(acme.live.send({"recipient": address(), "amount": 1, "metadata": metadata}), 400, "metadata")


def test_a_batch_names_the_key_that_sent_it(acme: Organization) -> None:
    keys = [acme.new_key() for _ in range(2)]
    ids = [key.batch(key.queue({"recipient": address(), "amount": 1}))["api_key_id"] for key in keys]
    listed = {key["id"] for key in acme.service.json("keys", "list", str(acme.id))}
    assert ids[0] != ids[1]
    assert set(ids) <= listed
