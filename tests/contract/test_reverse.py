"""Points taken back: what a reversal does, to whom, and what it never does."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.contract.calls import (
    TIMESTAMP,
    Organization,
    address,
    addresses,
    nothing_changes,
    organization,
    refusal,
    success,
)
from tests.contract.reversing import outcomes, reverse, send, taken, would_take
from tests.deadline import until
from tests.service.up import Service


def test_a_batch_is_taken_back_from_users_and_from_what_is_held(service: Service, acme: Organization) -> None:
    paid, held = address(), address()
    service.register(paid)
    before = acme.live.balance
    batch_id, ids = send(acme.live, {"recipients": [paid, held], "amount": 40})
    answer = reverse(acme.live, {"batch": batch_id, "reason": "the wrong list"})
    result = success(answer, 201)
    assert result == {
        "reversal_id": result["reversal_id"],
        "transactions": [
            {"id": ids[0], "email": paid, "amount": 40, "reversed": 40, "code": None},
            {"id": ids[1], "email": held, "amount": 40, "reversed": 40, "code": None},
        ],
        "amount": 80,
        "current_balance": before,
    }
    assert acme.live.balance == before
    assert service.points_of(paid) == 0
    assert answer.headers["Location"] == f"/v1/reversals/{result['reversal_id']}"
    assert "Idempotency-Replayed" not in answer.headers
    # What was held is no longer there to be claimed.
    assert service.register(held)["balance"] == 0
    batch = acme.live.batch(batch_id)
    assert [(one["reversed"], one["state"]) for one in batch["transactions"]] == [(40, "reversed")] * 2
    assert [one["debited"] for one in batch["transactions"]] == [True, True], "the flags stay as issued"
    assert [one["credited"] for one in batch["transactions"]] == [True, False]
    expected = {"recipients": 2, "debited": 2, "credited": 0, "held": 0, "unpaid": 0, "reversed": 2}
    assert batch["counts"] == expected
    [listed] = acme.live.listed("batches", batch=batch_id)
    assert listed["counts"] == expected
    for state, there in (("reversed", 2), ("credited", 0), ("held", 0)):
        assert len(acme.live.listed("transactions", batch=batch_id, state=state)) == there


def test_a_part_is_taken_and_a_registration_claims_the_rest(service: Service, acme: Organization) -> None:
    paid, held = address(), address()
    service.register(paid)
    batch_id, ids = send(acme.live, {"recipients": [paid, held], "amount": 40})
    assert outcomes(taken(acme.live, {"batch": batch_id, "amount": 15})) == [(15, None)] * 2
    states = [(one["reversed"], one["state"]) for one in acme.live.batch(batch_id)["transactions"]]
    assert states == [(15, "credited"), (15, "held")]
    assert service.points_of(paid) == 25
    assert service.register(held)["balance"] == 25
    assert outcomes(taken(acme.live, {"transactions": [ids[1]], "amount": 26})) == [(0, "more_than_left")]
    assert outcomes(taken(acme.live, {"transactions": ids[::-1]})) == [(25, None)] * 2
    assert service.points_of(held) == 0
    assert acme.live.batch(batch_id)["counts"]["reversed"] == 2


def test_each_transaction_says_why_nothing_was_taken_from_it(service: Service) -> None:
    acme = organization(service, 25)
    batch_id, ids = send(acme.live, {"recipients": addresses(3), "amount": 10})
    taken(acme.live, {"transactions": [ids[0]], "amount": 4})
    assert outcomes(taken(acme.live, {"transactions": ids, "amount": 8})) == [
        (0, "more_than_left"),
        (8, None),
        (0, "not_debited"),
    ]
    assert outcomes(taken(acme.live, {"batch": batch_id})) == [(6, None), (2, None), (0, "not_debited")]
    again = taken(acme.live, {"batch": batch_id})
    assert outcomes(again) == [(0, "already_reversed"), (0, "already_reversed"), (0, "not_debited")]
    assert (again["amount"], again["current_balance"], acme.live.balance) == (0, 25, 25)


def test_an_atomic_reversal_takes_all_or_none(acme: Organization) -> None:
    _, ids = send(acme.live, {"recipients": addresses(2), "amount": 10})
    taken(acme.live, {"transactions": [ids[1]]})
    before = acme.live.balance
    body = {"transactions": ids, "atomic": True}
    assert outcomes(taken(acme.live, body)) == [(0, None), (0, "already_reversed")]
    assert acme.live.balance == before
    assert outcomes(taken(acme.live, {"transactions": [ids[0]], "atomic": True})) == [(10, None)]


def test_nothing_is_taken_if_another_sum_than_expected_would_come_back(acme: Organization) -> None:
    batch_id, ids = send(acme.live, {"recipients": addresses(2), "amount": 10})
    body, key = {"batch": batch_id}, address()
    faults: tuple[object, ...] = (
        {},
        [],
        "",
        20,
        {"recoverable": -1},
        {"recoverable": "20"},
        {"amount": 20},
        {"recoverable": None},
    )
    for bad in faults:
        refusal(reverse(acme.live, body | {"expect": bad}), 400, "expect")
    with nothing_changes(acme.live):
        for expected in (19, 21, 0):
            wrong = body | {"expect": {"recoverable": expected}}
            refusal(reverse(acme.live, wrong, Idempotency_Key=key), 409, "expect")
            found = would_take(acme.live, wrong)
            assert (found["validated"], found["recoverable"]) == (False, 20)
    first = reverse(acme.live, {"transactions": ids[:1], "amount": 1}, Prefer="respond-async")
    refusal(reverse(acme.live, body | {"expect": {"recoverable": 20}}), 409, "expect")
    assert first.status_code == 202
    assert would_take(acme.live, body | {"expect": {"recoverable": 19}})["validated"] is True
    for _ in range(2):
        right = body | {"expect": {"recoverable": 19}}
        assert taken(acme.live, right, Idempotency_Key=key)["amount"] == 19, "a refusal has not used up the key"
    whole = {"transactions": ids, "atomic": True, "expect": {"recoverable": 0}}
    assert taken(acme.live, whole)["amount"] == 0


def test_items_are_taken_back_at_their_own_amounts(acme: Organization) -> None:
    items = [{"email": address(), "amount": amount} for amount in (5, 7)]
    batch_id, _ = send(acme.live, {"items": items})
    assert outcomes(taken(acme.live, {"batch": batch_id, "amount": 6})) == [(0, "more_than_left"), (6, None)]
    assert outcomes(taken(acme.live, {"batch": batch_id})) == [(5, None), (1, None)]


def test_a_key_makes_a_repetition_the_same_answer(acme: Organization) -> None:
    batch_id, ids = send(acme.live, {"recipient": address(), "amount": 10})
    key = address()
    first = reverse(acme.live, {"batch": batch_id, "amount": 4}, Idempotency_Key=key)
    taken(acme.live, {"batch": batch_id})
    again = reverse(acme.live, {"batch": batch_id, "amount": 4}, Idempotency_Key=key)
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]
    refusal(reverse(acme.live, {"transactions": ids, "amount": 4}, Idempotency_Key=key), 422, "idempotency_key")
    with acme.stopped("disable"):
        assert success(reverse(acme.live, {"batch": batch_id, "amount": 4}, Idempotency_Key=key), 201)
    refusal(reverse(acme.live, {"batch": batch_id}, Idempotency_Key="a b"), 400, "idempotency_key")


def test_a_replayed_send_shows_its_transactions_as_they_were_issued(acme: Organization) -> None:
    body, key = {"recipient": address(), "amount": 10}, address()
    first = acme.live.send(body, Idempotency_Key=key)
    taken(acme.live, {"batch": first.json()["additional_data"]["batch_id"]})
    assert acme.live.send(body, Idempotency_Key=key).json() == first.json()


@pytest.mark.parametrize("key", [None, "one"])
def test_sixteen_callers_at_once_take_it_once(acme: Organization, key: str | None) -> None:
    batch_id, _ = send(acme.live, {"recipients": addresses(20), "amount": 10})
    before = acme.live.balance
    headers = {} if key is None else {"Idempotency_Key": address()}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: reverse(acme.live, {"batch": batch_id}, **headers), range(16)))
    results = [success(answer, 201) for answer in answers]
    ids = {result["reversal_id"] for result in results}
    assert len(ids) == (16 if key is None else 1)
    assert sum({result["reversal_id"]: result["amount"] for result in results}.values()) == 200
    assert acme.live.balance == before + 200


def test_a_send_and_its_reversal_keep_their_order_when_both_wait(acme: Organization) -> None:
    before = acme.live.balance
    for _ in range(10):
        batch_id = acme.live.queue({"recipients": addresses(200), "amount": 10})
        answer = reverse(acme.live, {"batch": batch_id}, Prefer="respond-async")
        queued = success(answer, 202)
        assert queued == {"reversal_id": queued["reversal_id"], "status": "queued"}
        assert answer.headers["Location"] == f"/v1/reversals/{queued['reversal_id']}"
        assert int(answer.headers["Retry-After"]) > 0
    until(lambda: acme.live.get(answer.headers["Location"]).json()["data"]["final"], what="the last is done")
    assert acme.live.balance == before
    done = success(acme.live.get(answer.headers["Location"]))
    assert outcomes(done) == [(10, None)] * 200
    assert (done["amount"], done["current_balance"]) == (2_000, before)


def test_a_reversal_is_shown_and_listed(acme: Organization) -> None:
    batch_id, _ = send(acme.live, {"recipient": address(), "amount": 10})
    result = taken(acme.live, {"batch": batch_id, "reason": "twice"}, Idempotency_Key="once")
    shown = success(acme.live.get(f"/v1/reversals/{result['reversal_id']}"))
    assert {name: shown[name] for name in result} == result
    assert (shown["status"], shown["final"], shown["reason"], shown["refusal"]) == ("done", True, "twice", None)
    assert (shown["batch_id"], shown["idempotency_key"]) == (batch_id, "once")
    assert TIMESTAMP.match(shown["created_at"])
    assert TIMESTAMP.match(shown["done_at"])
    [listed] = acme.live.listed("reversals", idempotency_key="once")
    assert listed == {name: value for name, value in shown.items() if name != "transactions"}
    pages = acme.live.pages("reversals", limit=1, status="done")
    rows = [row for _, page in zip(range(3), pages, strict=False) for row in page]
    assert rows[0] == listed
    assert rows == sorted(rows, key=lambda row: row["reversal_id"], reverse=True)
    assert acme.live.listed("reversals", created_from="2999-01-01T00:00:00Z") == []
    refusal(acme.live.get("/v1/reversals", status="issued"), 400, "status")
    refusal(acme.live.get("/v1/reversals", email=address()), 400, "email")
    refusal(acme.live.get("/v1/reversals/999999999"), 404, "reversal")
    refusal(acme.live.get(f"/v1/reversals/{2**63}"), 404, "reversal")


def test_verify_says_what_would_come_back_and_changes_nothing(service: Service) -> None:
    acme, paid = organization(service, 35), address()
    service.register(paid)
    batch_id, ids = send(acme.live, {"recipients": [paid, *addresses(3)], "amount": 10})
    taken(acme.live, {"transactions": [ids[1]]})
    with nothing_changes(acme.live):
        found = would_take(acme.live, {"batch": batch_id})
        del found["version"]
        assert found == {
            "validated": True,
            "error": None,
            "recoverable": 20,
            "transactions": 4,
            "held": 1,
            "credited": 1,
            "already_reversed": 1,
            "not_debited": 1,
            "queued": 0,
        }
        assert would_take(acme.live, {"transactions": ids[:3], "amount": 3})["recoverable"] == 6
        for body in ({"batch": batch_id, "atomic": True}, {"transactions": ids[3:]}, {"batch": batch_id, "amount": 11}):
            found = would_take(acme.live, body)
            assert (found["validated"], found["recoverable"]) == (False, 0)
            assert found["error"]
    with acme.stopped("disable"):
        found = would_take(acme.live, {"batch": batch_id})
        assert (found["validated"], found["recoverable"], found["credited"]) == (False, 0, 1)
    with acme.stopped("suspend"):
        assert would_take(acme.live, {"batch": batch_id})["validated"]


def test_what_the_balance_cannot_hold_does_not_come_back(service: Service) -> None:
    acme = organization(service, 2**63 - 1)
    batch_id, _ = send(acme.live, {"recipient": address(), "amount": 10})
    acme.refill(1)
    found = would_take(acme.live, {"batch": batch_id})
    assert (found["validated"], found["recoverable"]) == (False, 0)
    assert "cannot hold" in found["error"]
    refusal(reverse(acme.live, {"batch": batch_id}), 409, "organization")
    assert would_take(acme.live, {"batch": batch_id, "amount": 9})["validated"]


def test_a_suspended_organization_may_and_a_disabled_one_may_not(acme: Organization) -> None:
    batch_id, _ = send(acme.live, {"recipient": address(), "amount": 10})
    with acme.stopped("disable"), nothing_changes(acme.live):
        answer = reverse(acme.live, {"batch": batch_id}, Idempotency_Key="again")
        refusal(answer, 403, "organization")
        assert answer.json()["additional_data"]["code"] == "organization_disabled"
    with acme.stopped("suspend"):
        assert taken(acme.live, {"batch": batch_id}, Idempotency_Key="again")["amount"] == 10


def test_what_is_anothers_or_the_other_modes_is_not_there(acme: Organization, globex: Organization) -> None:
    batch_id, [one] = send(acme.live, {"recipient": address(), "amount": 10})
    reversal_id = taken(acme.live, {"batch": batch_id, "amount": 1})["reversal_id"]
    for key in (acme.development, globex.live, globex.development):
        with nothing_changes(key), nothing_changes(acme.live):
            for path in ("/v1/points/reverse", "/v1/points/reverse/verify"):
                found = []
                for batch, transaction in ((batch_id, one), (999_999_999, 2**62)):
                    asked = {"reason": "x", "batch": batch}
                    sentences = refusal(key.call("POST", path, json=asked), 404, "batch")["batch"]
                    asked = {"reason": "x", "transactions": [transaction]}
                    sentences += refusal(key.call("POST", path, json=asked), 400, "transactions.0")["transactions.0"]
                    found.append([sentence.replace(str(batch), "N") for sentence in sentences])
                assert found[0] == found[1]
        refusal(key.get(f"/v1/reversals/{reversal_id}"), 404, "reversal")
        assert reversal_id not in [row["reversal_id"] for row in key.listed("reversals")]


def test_the_sandbox_takes_back_its_own_points_and_no_users(service: Service, acme: Organization) -> None:
    email = address()
    service.register(email)
    acme.development.add_user(email)
    before, live = acme.development.balance, acme.live.balance
    batch_id, _ = send(acme.development, {"recipients": [email, address()], "amount": 10})
    result = taken(acme.development, {"batch": batch_id})
    assert outcomes(result) == [(10, None)] * 2
    assert (result["current_balance"], acme.development.balance, acme.live.balance) == (before, before, live)
    assert service.points_of(email) == 0


def test_every_fault_is_named_in_one_answer(acme: Organization) -> None:
    _, [one] = send(acme.live, {"recipient": address(), "amount": 10})
    call = "/v1/points/reverse"
    with nothing_changes(acme.live):
        refusal(acme.live.call("POST", call, json={}), 400, "batch", "transactions", "reason")
        body = {"batch": "1", "transactions": [one, one, "1", 0, 2**63, 1.5, True], "amount": 0, "atomic": "yes"}
        places = [f"transactions.{place}" for place in range(1, 7)]
        fields = ("batch", "transactions", *places, "amount", "atomic", "reason", "raeson")
        errors = refusal(acme.live.call("POST", call, json=body | {"raeson": "x"}), 400, *fields)
        assert errors["amount"][0].endswith("but is 0.")
        assert "transactions.0" in errors["transactions.1"][0]
        assert "reason" in errors["raeson"][0]
        for reason in ("x" * 256, "a\0b", 7):
            refusal(acme.live.call("POST", call, json={"transactions": [one], "reason": reason}), 400, "reason")
        wrong: list[object] = [{}, "1", list(range(1, 10_002))]
        for transactions in wrong:
            body = {"reason": "x", "transactions": transactions}
            refusal(acme.live.call("POST", call, json=body), 400, "transactions")
        for amount in (True, "1", 1.0, -1, 2**63):
            body = {"reason": "x", "transactions": [one], "amount": amount}
            refusal(acme.live.call("POST", call, json=body), 400, "amount")
        refusal(acme.live.call("POST", call, json={"reason": "x", "batch": 0}), 400, "batch")
        refusal(acme.live.call("POST", call, json={"reason": "x", "batch": 2**70}), 404, "batch")
        refusal(reverse(acme.live, {"batch": 2**70}, Idempotency_Key="far"), 404, "batch")
        refusal(acme.live.call("POST", f"{call}?wait=1", json={}), 400, "wait")
    assert taken(acme.live, {"transactions": [one], "reason": "x" * 255, "amount": None})["amount"] == 10
