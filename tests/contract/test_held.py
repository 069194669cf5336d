"""Held points: what becomes of them when an account is registered with the address."""

from tests.contract.calls import HELD, PAID, TRANSACTION, UNPAID, Organization, address, addresses, flags, success
from tests.service.up import Service


def test_held_points_are_credited_without_a_debit(service: Service, acme: Organization, globex: Organization) -> None:
    email, held = address(), []
    for key, amount in ((acme.live, 60), (globex.live, 5), (acme.live, 30)):
        answer = key.send({"recipient": email.upper(), "amount": amount})
        [one] = success(answer, 201)["transactions"]
        held.append((key, answer.json()["additional_data"]["batch_id"], one))
    assert flags([one for _, _, one in held]) == [HELD] * 3
    # The balance does not pay this one, and what is not paid is never credited.
    body = {"recipients": [email, *addresses(9_999)], "amount": 1_000_000_000, "atomic": True}
    unpaid = acme.live.send(body).json()["additional_data"]["batch_id"]
    balances = acme.live.balance, globex.live.balance
    user = service.register(email, "Grace", "Hopper")
    assert user["balance"] == 95
    for key, batch_id, one in held:
        recipient = {"id": user["id"], "first_name": "Grace", "last_name": "Hopper"}
        expected = {
            **{name: one[name] for name in TRANSACTION},
            "credited": True,
            "allocated": True,
            "recipient": recipient,
        }
        [now] = key.batch(batch_id)["transactions"]
        assert {name: now[name] for name in expected} == expected
        assert success(key.get(f"/v1/transactions/{one['id']}")) == now
        assert now in key.listed("transactions", email=email, credited="true")
        assert key.listed("transactions", email=email, debited="true", allocated="false") == []
    assert flags(acme.live.batch(unpaid)["transactions"][:1]) == [UNPAID]
    assert (acme.live.balance, globex.live.balance) == balances


def test_sends_to_a_registered_user_are_credited_at_once_and_once(service: Service, acme: Organization) -> None:
    email = address()
    success(acme.live.send({"recipient": email, "amount": 1}), 201)
    service.register(email)
    assert flags(success(acme.live.send({"recipient": email, "amount": 2}), 201)["transactions"]) == [PAID]
    service.command("users", "create", email.upper(), "Ada", "Again", status=1)
    assert service.points_of(email) == 3
