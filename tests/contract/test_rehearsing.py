"""Rehearsing: the sandbox fails as live does, its clock goes on, and it has users of its own."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.contract.calls import (
    HELD,
    PAID,
    UNPAID,
    Key,
    Organization,
    address,
    flags,
    nothing_changes,
    organization,
    refusal,
    success,
)
from tests.deadline import until
from tests.service.up import Service

_DAY = timedelta(days=1)
moment = datetime.fromisoformat


def _at(name: str) -> str:
    return f"{name}@sandbox.points.test"


def _register(key: Key, email: str, *names: str) -> httpx.Response:
    first_name, last_name = names or ("Ada", "Lovelace")
    body = {"email": email, "first_name": first_name, "last_name": last_name}
    return key.call("POST", "/v1/sandbox/users", json=body)


@pytest.fixture(scope="module")
def made(service: Service) -> Organization:
    return organization(service, 1_000, sandbox_balance=1_000)


# --- Reserved recipients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "field", "code"),
    [
        ("suspended", 403, "organization", "organization_suspended"),
        ("disabled", 403, "organization", "organization_disabled"),
        ("unavailable", 503, "service", "out_of_reach"),
        ("rate_limited", 429, "rate_limit", "rate_limited"),
    ],
)
def test_a_reserved_recipient_makes_a_send_fail_as_a_live_one_may(
    made: Organization, name: str, status: int, field: str, code: str
) -> None:
    body = {"recipients": [address(), _at(name).upper()], "amount": 1}
    with nothing_changes(made.development):
        answer = made.development.send(body, Idempotency_Key=name)
        refusal(answer, status, field)
        by_header = made.development.send({"recipient": address(), "amount": 1}, Points_Rehearse=name)
        assert refusal(by_header, status, field) == answer.json()["errors"]
    assert answer.json()["additional_data"]["code"] == code
    assert ("Retry-After" in answer.headers) is (status in (429, 503))
    # The refused send has not used up its key, and a live key knows nothing of reserved recipients.
    success(made.development.send({"recipient": address(), "amount": 1}, Idempotency_Key=name), 201)
    assert flags(success(made.live.send(body), 201)["transactions"]) == [HELD, HELD]


def test_verify_says_what_a_send_to_reserved_recipients_would_meet(made: Organization) -> None:
    for name, code in (
        ("suspended", "organization_suspended"),
        ("disabled", "organization_disabled"),
        ("insufficient", "insufficient_balance"),
    ):
        answer = made.development.verify({"recipients": [address(), _at(name)], "amount": 5})
        assert success(answer)["validated"] is False
        assert answer.json()["additional_data"]["code"] == code
    assert answer.json()["additional_data"] | {"version": ""} == {
        "version": "",
        "code": "insufficient_balance",
        "required": 10,
        "available": 5,
        "affordable_recipients": 1,
        "awaits_approval": False,
    }
    assert success(made.live.verify({"recipient": _at("suspended"), "amount": 5}))["validated"] is True


def _verify(key: Key, word: str) -> httpx.Response:
    body = {"recipient": address(), "amount": 1}
    return key.call("POST", "/v1/points/verify", json=body, headers={"Points-Rehearse": word})


def test_by_a_header_a_balance_pays_nobody_a_send_is_202_or_gets_no_answer(made: Organization) -> None:
    key, before = made.development, made.development.balance
    body = {"recipients": [address(), address()], "amount": 1}
    unpaid = success(key.send(body, Points_Rehearse="insufficient", Idempotency_Key="unpaid"), 201)
    assert flags(unpaid["transactions"]) == [UNPAID, UNPAID]
    assert unpaid["current_balance"] == before == key.balance
    # The header is no part of the send: the same one without it is answered as it was issued.
    assert success(key.send(body, Idempotency_Key="unpaid"), 201) == unpaid
    assert success(key.send(body, Points_Rehearse="accepted"), 202)["status"] == "queued"
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        key.send(body, Points_Rehearse="silent", Idempotency_Key="silenced")
    success(key.send(body, Points_Rehearse="silent", Idempotency_Key="silenced"), 201)


@pytest.mark.parametrize("word", ["", "Suspended", "suspended, silent", "x" * 300])
def test_what_cannot_be_rehearsed_is_refused_on_the_header(made: Organization, word: str) -> None:
    body = {"recipient": address(), "amount": 1}
    for call in (made.development.send(body, Points_Rehearse=word), _verify(made.development, word)):
        [sentence] = refusal(call, 400, "points_rehearse")["points_rehearse"]
        assert (
            "must be one of suspended, disabled, insufficient, accepted, unavailable, silent, rate_limited" in sentence
        )


def test_a_live_key_cannot_rehearse(made: Organization) -> None:
    body = {"recipient": address(), "amount": 1}
    with nothing_changes(made.live):
        for answer in (made.live.send(body, Points_Rehearse="insufficient"), _verify(made.live, "suspended")):
            [sentence] = refusal(answer, 400, "points_rehearse")["points_rehearse"]
            assert "live key" in sentence
    unknown = Key(made.service, f"{made.live.text[:-1]}{'a' if made.live.text[-1] != 'a' else 'b'}")
    refusal(unknown.send(body, Points_Rehearse="silent"), 401, "authorization")


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("by_item", [False, True])
def test_a_balance_ends_before_the_reserved_recipient(made: Organization, by_item: bool, atomic: bool) -> None:
    emails = [address(), _at("insufficient"), address()]
    to: dict[str, Any] = {"recipients": emails, "amount": 2}
    if by_item:
        to = {"items": [{"email": email, "amount": amount} for amount, email in enumerate(emails, start=2)]}
    before = made.development.balance
    issued = success(made.development.send(to | {"atomic": atomic}), 201)
    paid = UNPAID if atomic else HELD
    assert flags(issued["transactions"]) == [paid, UNPAID, UNPAID]
    assert issued["current_balance"] == made.development.balance == before - (0 if atomic else 2)


def test_a_send_to_the_reserved_recipient_is_202_and_issued_soon(made: Organization) -> None:
    body = {"recipient": _at("accepted"), "amount": 1}
    batch_id = success(made.development.send(body, Idempotency_Key="accepted"), 202)["batch_id"]
    until(lambda: made.development.is_issued(batch_id), every_s=0.1)
    replayed = made.development.send(body, Idempotency_Key="accepted")
    success(replayed, 201)
    assert replayed.headers["Idempotency-Replayed"] == "true"


def test_a_send_to_the_reserved_recipient_gets_no_answer_but_its_repetition_does(made: Organization) -> None:
    body = {"recipient": _at("silent"), "amount": 1}
    before = made.development.balance
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        made.development.send(body, Idempotency_Key="silent")
    issued = success(made.development.send(body, Idempotency_Key="silent"), 201)
    assert issued["current_balance"] == before - 1 == made.development.balance
    refused = Key(made.service, f"{made.development.text[:-1]}{'a' if made.development.text[-1] != 'a' else 'b'}")
    refusal(refused.send(body), 401, "authorization")


# --- The clock --------------------------------------------------------------------------------------------------------


def test_the_clock_of_the_sandbox_moves_what_is_scheduled_and_held_and_a_reset_puts_it_back(service: Service) -> None:
    made = organization(service, 1_000, sandbox_balance=1_000)
    live, key = made.live, made.development
    began = datetime.now(UTC)
    later = (began + 30 * _DAY).isoformat()
    waiting = [success(one.send({"recipient": address(), "amount": 5, "send_at": later}), 202) for one in (live, key)]
    held = success(key.send({"recipient": address(), "amount": 7, "hold_days": 31}), 201)["transactions"][0]
    kept = success(live.send({"recipient": address(), "amount": 7, "hold_days": 31}), 201)["transactions"][0]
    assert success(key.set_clock(began + 30 * _DAY)) == {
        "now": (began + 30 * _DAY).isoformat(timespec="microseconds").replace("+00:00", "Z")
    }
    until(lambda: key.is_issued(waiting[1]["batch_id"]), every_s=0.1)
    issued = key.batch(waiting[1]["batch_id"])
    assert began + 30 * _DAY < moment(issued["issued_at"]) < began + 30 * _DAY + timedelta(minutes=1)
    assert moment(issued["transactions"][0]["created_at"]) == moment(issued["issued_at"])
    assert key.get(f"/v1/transactions/{held['id']}").json()["data"]["state"] == "held"

    success(key.set_clock(began + 31 * _DAY + timedelta(minutes=1)))
    until(lambda: key.get(f"/v1/transactions/{held['id']}").json()["data"]["state"] == "returned", every_s=0.1)
    fresh = success(key.send({"recipient": address(), "amount": 1, "hold_days": 1}), 201)["transactions"][0]
    assert moment(fresh["created_at"]) > began + 31 * _DAY
    assert moment(fresh["held_until"]) - moment(fresh["created_at"]) == _DAY
    longer = {"held_until": (began + 40 * _DAY).isoformat()}
    success(key.call("POST", f"/v1/transactions/{fresh['id']}/extend", json=longer))
    reversed_ = success(key.call("POST", "/v1/points/reverse", json={"batch": issued["batch_id"], "reason": "R"}), 201)
    done = key.get(f"/v1/reversals/{reversed_['reversal_id']}").json()["data"]
    assert min(moment(done["created_at"]), moment(done["done_at"])) > began + 31 * _DAY
    # A batch may be scheduled and moved by the time of the sandbox only.
    refusal(key.send({"recipient": address(), "amount": 1, "send_at": (began + 31 * _DAY).isoformat()}), 400, "send_at")
    far = {"send_at": (began + 390 * _DAY).isoformat()}
    last = success(key.send({"recipient": address(), "amount": 1, **far}), 202)["batch_id"]
    success(key.call("PATCH", f"/v1/batches/{last}", json={"send_at": (began + 391 * _DAY).isoformat()}))
    success(key.call("POST", f"/v1/batches/{last}/cancel"))

    def events() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = key.get("/v1/events").json()["data"]["events"]
        return found

    until(lambda: events()[-1]["type"] == "batch.cancelled", every_s=0.1)
    stamps = {event["type"]: moment(event["timestamp"]) for event in events()}
    for kind in ("transaction.returned", "batch.issued", "reversal.issued", "batch.scheduled", "batch.cancelled"):
        assert stamps[kind] > began + 31 * _DAY, kind
    # Nothing of it is live.
    assert live.batch(waiting[0]["batch_id"])["status"] == "scheduled"
    assert live.get(f"/v1/transactions/{kept['id']}").json()["data"]["state"] == "held"
    now = success(live.send({"recipient": address(), "amount": 1}), 201)["transactions"][0]
    assert moment(now["created_at"]) < datetime.now(UTC) + timedelta(minutes=1)

    assert success(key.call("POST", "/v1/sandbox/reset"))["balance"] == 1_000
    back = success(key.send({"recipient": address(), "amount": 1}), 201)["transactions"][0]
    assert moment(back["created_at"]) < datetime.now(UTC) + timedelta(minutes=1)
    assert [row["id"] for row in key.listed("transactions")].count(back["id"]) == 1


def test_the_clock_goes_forwards_only_and_two_years_at_most(service: Service) -> None:
    key = organization(service, 0).development
    now = datetime.now(UTC)
    success(key.set_clock(now + 2 * _DAY))
    [early] = refusal(key.set_clock(now + _DAY), 400, "now")["now"]
    assert "must not be before the time of the sandbox" in early
    [late] = refusal(key.set_clock(now + 732 * _DAY), 400, "now")["now"]
    assert "at most 731 days ahead" in late
    success(key.set_clock(now + 730 * _DAY))
    for body in ({}, {"now": None}, {"now": "soon"}, {"now": 1}):
        refusal(key.call("POST", "/v1/sandbox/clock", json=body), 400, "now")


@pytest.mark.parametrize("call", ["reset", "clock", "users"])
def test_a_live_key_changes_no_sandbox(made: Organization, call: str) -> None:
    answer = made.live.call("POST", f"/v1/sandbox/{call}", json={})
    refusal(answer, 403, "authorization")
    assert answer.json()["additional_data"]["code"] == "development_key_required"


# --- Users of the sandbox ---------------------------------------------------------------------------------------------


def test_a_user_of_the_sandbox_claims_what_its_sandbox_holds_and_nothing_else(service: Service) -> None:
    made, other = (organization(service, 1_000, sandbox_balance=1_000) for _ in range(2))
    email = address()
    sent = {
        key: success(key.send({"recipient": email, "amount": 10}), 201)
        for key in (made.development, made.live, other.development)
    }
    answer = _register(made.development, f" {email.upper()} ")
    user = success(answer, 201)
    assert answer.json()["additional_data"]["claimed"] == {"transactions": 1, "amount": 10}
    assert user | {"id": 0, "created_at": ""} == {
        "id": 0,
        "email": email.upper(),
        "first_name": "Ada",
        "last_name": "Lovelace",
        "created_at": "",
    }

    def state(key: Key) -> Any:
        return key.get(f"/v1/transactions/{sent[key]['transactions'][0]['id']}").json()["data"]

    shown = state(made.development)
    assert (shown["state"], *flags([shown])) == ("credited", PAID)
    assert shown["recipient"] == {"id": user["id"], "first_name": "Ada", "last_name": "Lovelace"}
    assert (state(made.live)["state"], state(other.development)["state"]) == ("held", "held")
    [later] = success(made.development.send({"recipient": email, "amount": 1}), 201)["transactions"]
    assert flags([later]) == [PAID]
    for key in (made.live, other.development):
        assert flags(success(key.send({"recipient": email, "amount": 1}), 201)["transactions"]) == [HELD]
    assert len(made.development.listed("transactions", user=str(user["id"]))) == 2
    assert len(made.live.listed("transactions", user=str(user["id"]))) == 0

    def claimed() -> list[Any]:
        return [
            event
            for event in made.development.get("/v1/events").json()["data"]["events"]
            if event["type"] == "transaction.claimed"
        ]

    until(lambda: len(claimed()) == 1, every_s=0.1)
    assert claimed()[0]["data"]["amount"] == 10

    # A repetition changes nothing; other names are a conflict.
    again = _register(made.development, email)
    assert success(again, 200) == user
    assert again.json()["additional_data"] == answer.json()["additional_data"]
    refusal(_register(made.development, email, "Grace", "Hopper"), 409, "email")

    # The live user of the address is another, and has what is live.
    service.command("users", "create", email, "Live", "User")
    assert state(made.live)["recipient"]["first_name"] == "Live"
    assert state(other.development)["state"] == "held", "no held points of a sandbox are claimed by a live user"
    assert state(made.development)["recipient"]["first_name"] == "Ada"
    assert service.points_of(email) == 11
    [own] = success(made.development.send({"recipient": email, "amount": 1}), 201)["transactions"]
    assert own["recipient"]["id"] == user["id"]
    taken = success(
        made.development.call("POST", "/v1/points/reverse", json={"transactions": [own["id"]], "reason": "R"}), 201
    )
    assert taken["amount"] == 1


def test_every_fault_of_a_user_of_the_sandbox_is_named(made: Organization) -> None:
    def faults(body: Any, *fields: str) -> dict[str, list[str]]:
        return refusal(made.development.call("POST", "/v1/sandbox/users", json=body), 400, *fields)

    faults({}, "email", "first_name")
    faults(
        {"email": "ada", "first_name": " ", "last_name": 5, "lastname": ""},
        *["email", "first_name", "last_name", "lastname"],
    )
    success(made.development.call("POST", "/v1/sandbox/users", json={"email": address(), "first_name": "Ada"}), 201)
