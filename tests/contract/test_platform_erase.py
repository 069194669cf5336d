"""A user is erased for good: by the call and by the command, with what callers have seen of them."""

from typing import Any

import pytest

from tests.contract.calls import HELD, Organization, address, flags, refusal, success
from tests.contract.platform import Platform, platform
from tests.service.up import Service

_OTHERWISE: dict[str, Any] = {
    "amount": 6,
    "atomic": True,
    "label": "x",
    "metadata": {"x": "y"},
    "hold_days": 3,
    "send_at": "2030-01-01T00:00:00Z",
}


@pytest.fixture(scope="module")
def ours(service: Service) -> Platform:
    return platform(service)


def test_an_erased_user_is_known_nowhere_and_what_was_issued_stays(
    service: Service, acme: Organization, ours: Platform
) -> None:
    email, moved, other = address(), address(), address()
    kept = {"metadata": {"run": "1"}, "hold_days": 9}
    body: dict[str, Any] = {"recipients": [other, email.upper()], "amount": 5, **kept}
    before = success(acme.live.send(body, Idempotency_Key=email), 201)
    user = ours.registered(email, "Mary", "Jackson", external_id=email)
    success(acme.live.send({"recipient": email, "amount": 7}), 201)
    success(ours.change(user["id"], email=moved))
    success(acme.development.send({"recipient": moved, "amount": 7}), 201)
    taken = acme.live.call(
        "POST", "/v1/points/reverse", json={"transactions": [before["transactions"][1]["id"]], "reason": "x"}
    )
    reversal = success(taken, 201)
    path, name = f"/v1/platform/users/{user['id']}/erase", f"erased-{user['id']}"
    told = {"email": name, "first_name": name, "last_name": name, "external_id": None, "balance": 7}
    erased = success(ours.call("POST", path))
    assert erased == user | told
    assert success(ours.call("POST", path)) == erased
    assert success(ours.get("/v1/platform/users", email=moved))["users"] == []

    # Everything that callers read, and the replay, tells of the erased user.
    replay = acme.live.send(body, Idempotency_Key=email)
    assert replay.headers["Idempotency-Replayed"] == "true"
    again = success(replay, 201)["transactions"]
    assert [one["email"] for one in again] == [other, name]
    assert [one["id"] for one in again] == [one["id"] for one in before["transactions"]]
    guess = acme.live.send(body | {"recipients": [other, address()]}, Idempotency_Key=email)
    assert success(guess, 201)["transactions"] == again
    otherwise = [{name: value} for name, value in _OTHERWISE.items()]
    fewer, turned = {"recipients": [other]}, {"recipients": [email, other]}
    for another in (*otherwise, *({name: None} for name in kept), fewer, turned):
        refusal(acme.live.send(body | another, Idempotency_Key=email), 422, "idempotency_key")
    [first, second] = success(acme.live.get("/v1/transactions", user=user["id"]))["transactions"]
    assert {first["email"], second["email"]} == {name}
    assert first["recipient"] == {"id": user["id"], "first_name": name, "last_name": name}
    shown = success(acme.live.get(f"/v1/reversals/{reversal['reversal_id']}"))
    assert [one["email"] for one in shown["transactions"]] == [name]
    for one in (email, moved):
        for key in (acme.live, acme.development):
            assert success(key.get("/v1/transactions", email=one))["transactions"] == []

    # The address is anybody's again.
    [held] = success(acme.live.send({"recipient": moved, "amount": 2}), 201)["transactions"]
    assert flags([held]) == [HELD]
    new = ours.registered(moved, "Katherine", "Johnson", external_id=email)
    assert (new["id"] != user["id"], new["balance"]) == (True, 2)
    answer = ours.change(user["id"], first_name="Mary")
    refusal(answer, 409, "user")
    assert answer.json()["additional_data"]["code"] == "user_erased"

    # The command is the same.
    left = service.json("users", "erase", str(new["id"]))
    assert (left["email"], left["balance"]) == (f"erased-{new['id']}", 2)
    service.command("users", "show", moved, status=1)
    service.command("users", "erase", "999999999", status=1)


def test_an_erasure_takes_no_field_and_needs_the_scope(service: Service, ours: Platform) -> None:
    user = ours.registered(address())
    path = f"/v1/platform/users/{user['id']}/erase"
    refusal(ours.call("POST", path, json={"reason": "asked"}), 400, "reason")
    refusal(ours.call("POST", f"{path}?now=1"), 400, "now")
    refusal(platform(service, "users:read").call("POST", path), 403, "authorization")
    for number in ("0", "999999999", "9" * 30):
        refusal(ours.call("POST", f"/v1/platform/users/{number}/erase"), 404, "user")
    assert ours.user(user["id"]) == user
