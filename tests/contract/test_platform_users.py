"""The platform's users: registered, found and changed; a balance is exact, and what is held is claimed once."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.contract.calls import (
    HELD,
    PAID,
    TIMESTAMP,
    Organization,
    address,
    addresses,
    flags,
    organization,
    refusal,
    success,
)
from tests.contract.platform import Platform, claimed, platform
from tests.contract.reversing import send
from tests.service.up import Service

_USER = {"id", "email", "first_name", "last_name", "external_id", "balance", "created_at"}


@pytest.fixture(scope="module")
def ours(service: Service) -> Platform:
    return platform(service)


def _code(answer: Any) -> str:
    return str(answer.json()["additional_data"]["code"])


def test_a_sign_up_claims_what_is_held_and_its_repetition_changes_nothing(
    service: Service, acme: Organization, globex: Organization, ours: Platform
) -> None:
    email = address()
    for key, amount in ((acme.live, 60), (globex.live, 5), (acme.development, 7)):
        success(key.send({"recipient": email.upper(), "amount": amount}), 201)
    answer = ours.register(f" {email} ", "Grace", "Hopper", external_id=email)
    user = success(answer, 201)
    assert set(user) == _USER
    assert user | {"id": 0, "created_at": ""} == {
        "id": 0,
        "email": email,
        "first_name": "Grace",
        "last_name": "Hopper",
        "external_id": email,
        "balance": 65,
        "created_at": "",
    }
    assert TIMESTAMP.match(user["created_at"])
    assert claimed(answer) == (2, 65)
    assert answer.headers["Location"] == f"/v1/platform/users/{user['id']}"
    again = ours.register(email.upper(), "Grace", "Hopper", external_id=email)
    assert success(again, 200) == user
    assert claimed(again) == (2, 65), "it tells what the registration has claimed, for its answer may have been lost"
    assert "Location" not in again.headers

    # It is the user of the commands and of every answer.
    shown = service.json("users", "show", email)
    assert (shown["id"], shown["balance"], shown["external_id"]) == (user["id"], 65, email)
    [sent] = success(acme.live.send({"recipient": email, "amount": 5}), 201)["transactions"]
    assert flags([sent]) == [PAID]
    assert sent["recipient"] == {"id": user["id"], "first_name": "Grace", "last_name": "Hopper"}
    assert ours.user(user["id"])["balance"] == 70
    service.command("users", "create", email, "Grace", "Hopper", status=1)


def test_many_sign_ups_of_one_address_at_once_are_one_user_who_claims_once(acme: Organization, ours: Platform) -> None:
    email = address()
    success(acme.live.send({"recipient": email, "amount": 9}), 201)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ours.register(email), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["data"]["id"] for answer in answers}) == 1
    assert sorted(claimed(answer) for answer in answers) == [(1, 9)] * 8
    assert ours.user(answers[0].json()["data"]["id"])["balance"] == 9


def test_other_values_of_a_registered_address_or_external_id_are_a_conflict(ours: Platform) -> None:
    email, other = address(), address()
    user = ours.registered(email, external_id=email)
    for field, names, more in (
        ("email", ("Ada", "King"), {"external_id": email}),
        ("email", ("Augusta", "Lovelace"), {"external_id": email}),
        ("external_id", ("Ada", "Lovelace"), {"external_id": other}),
        ("external_id", ("Ada", "Lovelace"), {}),
    ):
        answer = ours.register(email, *names, **more)
        [sentence] = refusal(answer, 409, field)[field]
        assert _code(answer) == "user_conflict"
        assert str(user["id"]) in sentence
    refusal(ours.register(other, external_id=email), 409, "external_id")
    assert ours.user(user["id"]) == user
    assert success(ours.get("/v1/platform/users", email=other))["users"] == []
    ours.registered(other, "Prince", "")


def test_every_fault_of_a_user_is_named_and_registers_nobody(ours: Platform) -> None:
    def faults(body: Any, *fields: str) -> dict[str, list[str]]:
        return refusal(ours.call("POST", "/v1/platform/users", json=body), 400, *fields)

    faults({}, "email", "first_name")
    bad = {"email": "ada", "first_name": " ", "last_name": 5, "external_id": "a b", "externalid": "x"}
    assert "external_id" in faults(bad, *bad)["externalid"][0]
    email = address()
    for external_id in ("x" * 129, "\u200b", 7):
        faults({"email": email, "first_name": "Ada", "external_id": external_id}, "external_id")
    for query in ("?limit=1", "?email="):
        answer = ours.call("POST", f"/v1/platform/users{query}", json={"email": email, "first_name": "Ada"})
        refusal(answer, 400, query[1:].partition("=")[0])
    assert success(ours.get("/v1/platform/users", email=email))["users"] == []
    ours.registered(email, external_id=email[:32] + "x" * 96)


# --- Many at once -----------------------------------------------------------------------------------------------------


def test_a_bulk_registers_all_but_what_it_names_by_place(acme: Organization, ours: Platform) -> None:
    known, taken = ours.registered(address(), external_id=address()), ours.registered(address())
    emails = addresses(990)
    success(acme.live.send({"recipients": emails[:3], "amount": 4}), 201)
    users: list[Any] = [{"email": email, "first_name": "Ada", "last_name": "Lovelace"} for email in emails]
    users[1]["external_id"] = emails[1]
    users += [
        {name: known[name] for name in ("email", "first_name", "last_name", "external_id")},
        {"email": taken["email"], "first_name": "Another"},
        {"email": address(), "first_name": "Ada", "external_id": known["external_id"]},
        {"email": emails[0].upper(), "first_name": "Ada", "last_name": "Lovelace"},
        {"email": emails[1], "first_name": "Ada", "last_name": "Lovelace"},
        {"email": address(), "first_name": "Ada", "external_id": emails[1]},
        {"email": "no address", "first_name": "", "lastname": "x"},
        "ada@example.com",
        None,
        {"email": address(), "first_name": "Last"},
    ]
    assert len(users) == 1_000
    first = success(ours.bulk(users))["users"]
    assert [one["status"] for one in first[990:]] == [
        "exists",
        *["conflict"] * 2,
        "exists",
        *["conflict"] * 5,
        "created",
    ]
    assert {one["status"] for one in first[:990]} == {"created"}
    assert [one["user"]["email"] for one in first[:990]] == emails
    assert [one["user"]["balance"] for one in first[:4]] == [4, 4, 4, 0]
    assert first[990]["user"] == known
    assert first[993]["user"]["id"] == first[0]["user"]["id"]
    assert [sorted(one["errors"]) for one in first if one["errors"] is not None] == [
        *(["users.991.email"], ["users.992.external_id"], ["users.994.external_id"], ["users.995.external_id"]),
        *(["users.996.email", "users.996.first_name", "users.996.lastname"], ["users.997"], ["users.998"]),
    ]
    assert all((one["user"] is None) is (one["status"] == "conflict") for one in first)
    assert ours.user(taken["id"]) == taken

    again = success(ours.bulk(users))["users"]
    assert [one["user"] for one in again] == [one["user"] for one in first]
    assert {one["status"] for one in again} == {"exists", "conflict"}


def test_an_entry_of_a_bulk_in_conflict_keeps_no_later_one_back(ours: Platform) -> None:
    known, fresh, other, new_id = ours.registered(address(), external_id=address()), address(), address(), address()
    users: list[Any] = [
        {"email": fresh, "first_name": "Ada", "external_id": known["external_id"]},
        {"email": fresh, "first_name": "Ada"},
        {"email": known["email"], "first_name": "Another", "external_id": new_id},
        {"email": other, "first_name": "Ada", "external_id": new_id},
    ]
    answered = success(ours.bulk(users))["users"]
    assert [one["status"] for one in answered] == ["conflict", "created"] * 2
    assert [list(answered[place]["errors"]) for place in (0, 2)] == [["users.0.external_id"], ["users.2.email"]]


def test_a_bulk_has_1_to_1000_users(ours: Platform) -> None:
    one = {"email": address(), "first_name": "Ada"}
    bad: list[Any] = [[], None, "x", {}, [one] * 1_001]
    for users in bad:
        refusal(ours.bulk(users), 400, "users")
    refusal(ours.call("POST", "/v1/platform/users/bulk", json={"users": [one], "user": one}), 400, "user")
    assert success(ours.get("/v1/platform/users", email=one["email"]))["users"] == []


# --- Found ------------------------------------------------------------------------------------------------------------


def test_users_are_listed_newest_first_page_by_page_and_found_by_address_and_external_id(narrow: Service) -> None:
    acme, ours = organization(narrow, 100), platform(narrow)
    made = [ours.registered(address(), external_id=address()) for _ in range(5)]
    send(acme.live, {"items": [{"email": one["email"], "amount": 1 + one["id"] % 7} for one in made]})
    made = [one | {"balance": 1 + one["id"] % 7} for one in made]
    listed: list[Any] = []
    cursor = None
    while len(listed) < 6:
        page = success(ours.get("/v1/platform/users", limit=2, **({} if cursor is None else {"cursor": cursor})))
        assert set(page) == {"users", "next_cursor"}
        listed += page["users"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        ours.registered(address())  # Who comes meanwhile moves no page.
    assert listed[:5] == made[::-1]
    for filters in ({"email": made[2]["email"].upper()}, {"external_id": made[2]["external_id"]}):
        found = success(ours.get("/v1/platform/users", **filters))
        assert found == {"users": [made[2]], "next_cursor": None}
    both = {"email": made[2]["email"], "external_id": made[1]["external_id"]}
    assert success(ours.get("/v1/platform/users", **both))["users"] == []
    for query, field in (
        ({"email": "ada"}, "email"),
        ({"external_id": "a b"}, "external_id"),
        ({"limit": "0"}, "limit"),
        ({"cursor": ""}, "cursor"),
        ({"batch": "1"}, "batch"),
        ({"cursor": "A" * 38}, "cursor"),
    ):
        refusal(ours.get("/v1/platform/users", **query), 400, field)
    for number in ("0", "999999999", str(2**63), "9" * 400):
        refusal(ours.get(f"/v1/platform/users/{number}"), 404, "user")
        refusal(ours.call("PATCH", f"/v1/platform/users/{number}", json={"first_name": "x"}), 404, "user")


def test_a_user_of_a_sandbox_is_none_of_the_platform(acme: Organization, ours: Platform) -> None:
    email = address()
    body = {"email": email, "first_name": "Ada", "last_name": "Lovelace"}
    user = success(acme.development.call("POST", "/v1/sandbox/users", json=body), 201)
    refusal(ours.get(f"/v1/platform/users/{user['id']}"), 404, "user")
    refusal(ours.change(user["id"], first_name="x"), 404, "user")
    assert success(ours.get("/v1/platform/users", email=email))["users"] == []
    assert ours.registered(email)["id"] != user["id"]


# --- Changed ----------------------------------------------------------------------------------------------------------


def test_a_new_address_claims_what_is_held_for_it_and_the_old_one_keeps_what_it_had(
    service: Service, ours: Platform
) -> None:
    acme = organization(service, 1_000)
    old, new = address(), address()
    user = ours.registered(old)
    success(acme.live.send({"recipient": old, "amount": 100}), 201)
    success(acme.live.send({"recipient": new.upper(), "amount": 20}), 201)
    answer = ours.change(user["id"], email=new)
    changed = success(answer)
    assert claimed(answer) == (1, 20)
    assert changed == user | {"email": new, "balance": 120}
    assert ours.user(user["id"]) == changed
    # The same again, and the same address in other letters, claim nothing.
    for email in (new, new.upper()):
        again = ours.change(user["id"], email=email)
        assert claimed(again) == (0, 0)
        assert success(again) == changed | {"email": email}

    # From now on the user is known by the new address alone; who has the old one next gets what comes next.
    [to_new] = success(acme.live.send({"recipient": new, "amount": 3}), 201)["transactions"]
    [to_old] = success(acme.live.send({"recipient": old, "amount": 5}), 201)["transactions"]
    assert flags([to_new, to_old]) == [PAID, HELD]
    assert to_new["recipient"]["id"] == user["id"]
    other = ours.register(old, "Grace", "Hopper")
    assert success(other, 201)["balance"] == 5
    assert claimed(other) == (1, 5)
    assert claimed(ours.register(new)) == (0, 0), "a change of the address is no registration"
    assert ours.user(user["id"])["balance"] == 123
    kept = acme.live.listed("transactions", email=old)
    assert [one["recipient"]["id"] for one in kept] == [other.json()["data"]["id"], user["id"]]
    # A list of the user has what was got at either address, page by page, and nothing of the other's.
    of_user = acme.live.listed("transactions", user=user["id"], limit=1)
    assert [one["amount"] for one in of_user] == [3, 20, 100]

    # What was paid to the old address is taken from who had it.
    first = next(one["id"] for one in kept if one["amount"] == 100)
    body = {"transactions": [first], "amount": 30, "reason": "R"}
    assert success(acme.live.call("POST", "/v1/points/reverse", json=body), 201)["amount"] == 30
    assert ours.user(user["id"])["balance"] == 93
    service.command("audit")


def test_the_command_changes_a_user_as_the_call_does(service: Service, acme: Organization, ours: Platform) -> None:
    new = address()
    user, other = (ours.registered(address()) for _ in range(2))
    success(acme.live.send({"recipient": new, "amount": 4}), 201)
    number = str(user["id"])
    changed = service.json("users", "change", number, "--email", new, "--last-name", "", "--external-id", new)
    assert changed.pop("claimed") == {"transactions": 1, "amount": 4}
    assert changed == user | {"email": new, "last_name": "", "external_id": new, "balance": 4} == ours.user(user["id"])
    service.command("users", "change", number, status=2)
    for wrong in ("x", other["email"]):
        assert "The email" in service.command("users", "change", number, "--email", wrong, status=1).stderr
    assert ours.user(user["id"]) == changed


def test_a_change_that_would_make_two_users_of_one_address_is_a_conflict(acme: Organization, ours: Platform) -> None:
    one, other = (ours.registered(address(), external_id=address()) for _ in range(2))
    refusal(ours.change(one["id"], email=other["email"].upper(), first_name="X"), 409, "email")
    answer = ours.change(one["id"], external_id=other["external_id"], first_name="X")
    refusal(answer, 409, "external_id")
    assert _code(answer) == "user_conflict"
    assert ours.user(one["id"]) == one
    changed = success(ours.change(one["id"], first_name=" Augusta ", last_name="", external_id=None))
    assert changed == one | {"first_name": "Augusta", "last_name": "", "external_id": None}
    assert success(ours.change(other["id"], external_id=one["external_id"]))["external_id"] == one["external_id"]
    [sent] = success(acme.live.send({"recipient": one["email"], "amount": 1}), 201)["transactions"]
    assert sent["recipient"] == {"id": one["id"], "first_name": "Augusta", "last_name": ""}


def test_users_who_exchange_what_is_theirs_at_once_or_while_many_register_are_answered(ours: Platform) -> None:
    one, other = (ours.registered(address(), external_id=address()) for _ in range(2))
    with ThreadPoolExecutor(2) as pool:
        for _ in range(12):
            # Neither may have what the other has, and neither waits for the other.
            swaps = [
                pool.submit(ours.change, taker["id"], email=giver["email"], external_id=giver["external_id"])
                for taker, giver in ((one, other), (other, one))
            ]
            assert [swap.result().status_code for swap in swaps] == [409, 409]
            [first, last] = sorted((address(), address()))
            mover = ours.registered(last)
            both = [{"email": email, "first_name": "A", "last_name": "B"} for email in (first, last)]
            moved = pool.submit(ours.change, mover["id"], email=first)
            many = pool.submit(ours.bulk, both)
            assert (moved.result().status_code in (200, 409), many.result().status_code) == (True, 200)


def test_every_fault_of_a_change_is_named_and_changes_nothing(ours: Platform) -> None:
    user = ours.registered(address())

    def faults(body: Any, *fields: str) -> dict[str, list[str]]:
        return refusal(ours.call("PATCH", f"/v1/platform/users/{user['id']}", json=body), 400, *fields)

    faults({}, "body")
    faults([], "body")
    for empty in (None, "", " "):
        faults({"first_name": empty}, "first_name")
        faults({"email": empty}, "email")
    bad = {"email": "ada", "first_name": 1, "last_name": "x" * 256, "external_id": " ", "balance": 10**6}
    faults(bad, *bad)
    assert ours.user(user["id"]) == user
