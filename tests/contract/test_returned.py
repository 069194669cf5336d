"""Returned: points are held until an end, can be held for longer, and go back to the organization when it has come."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.contract.calls import (
    TIMESTAMP,
    Key,
    Organization,
    address,
    addresses,
    nothing_changes,
    organization,
    refusal,
    success,
)
from tests.contract.moments import let_days_pass
from tests.contract.reversing import outcomes, reverse, send, taken
from tests.deadline import until
from tests.service.up import Service

_RETURNED_WITHIN_S = 30


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _in_days(days: float) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def _extend(key: Key, transaction_id: int, body: Any) -> httpx.Response:
    return key.call("POST", f"/v1/transactions/{transaction_id}/extend", json=body)


def _shown(key: Key, transaction_id: int) -> dict[str, Any]:
    shown: dict[str, Any] = success(key.get(f"/v1/transactions/{transaction_id}"))
    return shown


def _state(key: Key, transaction_id: int) -> tuple[str, int]:
    shown = _shown(key, transaction_id)
    return shown["state"], shown["reversed"]


def _days_held(key: Key, batch_id: int) -> list[timedelta | None]:
    """Return for how long each transaction of a batch is held from its issue on."""
    ends = [(row["held_until"], row["created_at"]) for row in key.batch(batch_id)["transactions"]]
    return [end and _moment(end) - _moment(issued_at) for end, issued_at in ends]


# --- Until when -------------------------------------------------------------------------------------------------------


def test_points_are_held_for_the_days_of_the_organization_or_of_the_send(service: Service) -> None:
    made = organization(service, 1_000)
    member = address()
    service.register(member)
    for_ever, _ = send(made.live, {"recipient": address(), "amount": 1})
    assert service.platform("GET", f"organizations/{made.id}")["held_days"] is None
    service.command("organizations", "set", str(made.id), "--held-days", "30")
    assert service.platform("GET", f"organizations/{made.id}")["held_days"] == 30
    its, _ = send(made.live, {"recipients": [member, address()], "amount": 1})
    own, _ = send(made.live, {"recipients": [address(), member], "amount": 1, "hold_days": 3_650})
    service.command("organizations", "set", str(made.id), "--held-days", "none")
    again, _ = send(made.live, {"recipient": address(), "amount": 1, "hold_days": None})
    assert service.platform("GET", f"organizations/{made.id}")["held_days"] is None
    assert _days_held(made.live, for_ever) == [None]
    assert _days_held(made.live, its) == [None, timedelta(days=30)]
    assert _days_held(made.live, own) == [timedelta(days=3_650), None]
    assert _days_held(made.live, again) == [None]
    [held] = [row for row in made.live.batch(own)["transactions"] if row["state"] == "held"]
    assert TIMESTAMP.match(held["held_until"])
    assert held in made.live.listed("transactions", state="held")


@pytest.mark.parametrize("days", [0, -1, 3_651, 10**30, 1.0, "30", True, {}, [30]], ids=str)
def test_days_are_an_integer_from_1_to_3650(acme: Organization, days: object) -> None:
    with nothing_changes(acme.live):
        refusal(acme.live.send({"recipient": address(), "amount": 1, "hold_days": days}), 400, "hold_days")


def test_days_stand_in_the_one_400_with_all_other_faults_and_verify_takes_none(acme: Organization) -> None:
    body = {"recipients": ["nobody"], "amount": 0, "hold_days": 0, "send_at": "tomorrow"}
    refusal(acme.live.send(body), 400, "recipients.0", "amount", "hold_days", "send_at")
    refusal(acme.live.verify({"recipient": address(), "amount": 1, "hold_days": 5}), 400, "hold_days")


def test_an_organization_holds_for_1_to_3650_days_or_none(service: Service, acme: Organization) -> None:
    for days in ("0", "3651", "never"):
        service.command("organizations", "set", str(acme.id), "--held-days", days, status=2)
    service.command("organizations", "set", str(acme.id), status=2)
    service.command("organizations", "set", "999999", "--held-days", "1", status=1)


def test_a_send_for_other_days_is_another_body_also_for_those_of_the_organization(acme: Organization) -> None:
    key, body = uuid.uuid4().hex, {"recipient": address(), "amount": 1}
    first = success(acme.live.send(body | {"hold_days": 30}, Idempotency_Key=key), 201)
    for other in ({"hold_days": 31}, {"hold_days": None}, {}):
        refusal(acme.live.send(body | other, Idempotency_Key=key), 422, "idempotency_key")
    assert success(acme.live.send(body | {"hold_days": 30}, Idempotency_Key=key), 201) == first


# --- Held for longer --------------------------------------------------------------------------------------------------


def test_a_transaction_is_held_for_longer_and_a_replay_shows_what_was_issued(acme: Organization) -> None:
    key, body = uuid.uuid4().hex, {"recipients": addresses(2), "amount": 1, "hold_days": 2}
    issued = success(acme.live.send(body, Idempotency_Key=key), 201)
    one, other = (row["id"] for row in issued["transactions"])
    until_then = datetime.now(UTC).replace(microsecond=0) + timedelta(days=9)
    for _ in range(2):  # Asked for again, it is as it is.
        extended = success(_extend(acme.live, one, {"held_until": until_then.isoformat()}))
        assert _moment(extended["held_until"]) == until_then
    assert _shown(acme.live, one) == extended
    assert _shown(acme.live, other) == issued["transactions"][1]
    assert success(acme.live.send(body, Idempotency_Key=key), 201) == issued


_NOT_LATER = {"in a day": 1, "in the past": -1, "in too many days": 3_651}


@pytest.mark.parametrize("days", _NOT_LATER.values(), ids=_NOT_LATER)
def test_an_end_is_moved_to_a_later_moment_within_3650_days(acme: Organization, days: int) -> None:
    _, [one] = send(acme.live, {"recipient": address(), "amount": 1, "hold_days": 2})
    before = _shown(acme.live, one)
    refusal(_extend(acme.live, one, {"held_until": _in_days(days)}), 400, "held_until")
    assert _shown(acme.live, one) == before
    success(_extend(acme.live, one, {"held_until": _in_days(3_649)}))


_FAULTS: list[tuple[Any, list[str]]] = [
    ({}, ["held_until"]),
    ({"held_until": None}, ["held_until"]),
    ({"held_until": "2030-01-01T00:00:00"}, ["held_until"]),
    ({"held_until": 5, "amount": 1}, ["held_until", "amount"]),
    ([], ["body"]),
]


@pytest.mark.parametrize(("body", "fields"), _FAULTS, ids=str)
def test_a_faulty_extension_is_a_400_with_every_fault(acme: Organization, body: Any, fields: list[str]) -> None:
    _, [one] = send(acme.live, {"recipient": address(), "amount": 1, "hold_days": 2})
    refusal(_extend(acme.live, one, body), 400, *fields)


def test_only_what_is_held_with_an_end_is_extended_and_the_answer_says_why(service: Service) -> None:
    made = organization(service, 6, sandbox_balance=10)
    member, later = address(), {"held_until": _in_days(99)}
    service.register(member)
    body = {"recipients": [member, *addresses(3)], "amount": 2, "hold_days": 2}
    _, [credited, reversed_, held, unpaid] = send(made.live, body)
    taken(made.live, {"transactions": [reversed_]})
    _, [for_ever] = send(made.live, {"recipient": address(), "amount": 2})
    reasons = {credited: "credited", reversed_: "taken back", unpaid: "not debited", for_ever: "for ever"}
    for transaction_id, words in reasons.items():
        answer = _extend(made.live, transaction_id, later)
        assert words in refusal(answer, 409, "transaction")["transaction"][0]
        assert answer.json()["additional_data"] == {"code": "cannot_extend"}
    for key in (made.development, organization(service, 1).live):
        refusal(_extend(key, held, later), 404, "transaction")
    refusal(_extend(made.live, 2**63, later), 404, "transaction")
    with made.stopped("disable"):
        success(_extend(made.live, held, later))


# --- Returned ---------------------------------------------------------------------------------------------------------


def test_past_the_end_nothing_is_claimed_though_nothing_has_run(narrow: Service) -> None:
    acme, email, friend = organization(narrow, 100), address(), address()
    batch_id, [one, extended] = send(acme.live, {"recipients": [email, friend], "amount": 5, "hold_days": 3})
    success(_extend(acme.live, extended, {"held_until": _in_days(9)}))
    send(acme.live, {"recipient": email, "amount": 7})
    with narrow.paused("worker"):
        let_days_pass(narrow, 3, batch_id)
        assert narrow.register(email)["balance"] == 7
        assert narrow.register(friend)["balance"] == 5
        assert _state(acme.live, one) == ("held", 0)
        assert _moment(_shown(acme.live, one)["held_until"]) < datetime.now(UTC)
        answer = _extend(acme.live, one, {"held_until": _in_days(9)})
        assert "go back" in refusal(answer, 409, "transaction")["transaction"][0]
    until(lambda: _state(acme.live, one) == ("returned", 5), within_s=_RETURNED_WITHIN_S, every_s=0.5)
    assert narrow.points_of(email) == 7
    assert _state(acme.live, extended) == ("credited", 0)


@pytest.mark.parametrize("mode", ["live", "development"])
def test_what_is_unclaimed_goes_back_by_a_reversal_that_names_it(service: Service, mode: str) -> None:
    made = organization(service, 100, sandbox_balance=100)
    key: Key = getattr(made, mode)
    member, emails = address(), addresses(4)
    key.add_user(member)
    body = {"recipients": [member, *emails], "amount": 10, "hold_days": 3}
    answer = key.send(body, Idempotency_Key="once")
    issued, batch_id = success(answer, 201), answer.json()["additional_data"]["batch_id"]
    credited, part, whole, extended, last = (row["id"] for row in issued["transactions"])
    taken(key, {"transactions": [part], "amount": 4})
    taken(key, {"transactions": [whole]})
    success(_extend(key, extended, {"held_until": _in_days(9)}))
    let_days_pass(service, 3, batch_id)
    with made.stopped("disable"):  # It gets its points back all the same.
        until(lambda: _state(key, last) == ("returned", 10), within_s=_RETURNED_WITHIN_S, every_s=0.5)
    assert [_state(key, one) for one in (credited, part, whole, extended, last)] == [
        ("credited", 0),
        ("returned", 10),
        ("reversed", 10),
        ("held", 0),
        ("returned", 10),
    ]
    assert key.balance == 80
    shown = key.batch(batch_id)
    assert shown["counts"] == {
        "recipients": 5,
        "debited": 5,
        "credited": 1,
        "held": 1,
        "unpaid": 0,
        "reversed": 3,
    }
    # The flags stay as issued; nothing is held any more, so there is no end.
    [row] = [row for row in shown["transactions"] if row["id"] == last]
    assert (row["debited"], row["credited"], row["held_until"]) == (True, False, None)
    assert {row["id"] for row in key.listed("transactions", state="returned")} == {part, last}
    assert {row["id"] for row in key.listed("transactions", state="reversed")} == {whole}
    [returned] = [one for one in key.listed("reversals") if one["reason"] == "unclaimed"]
    assert (returned["batch_id"], returned["api_key_id"], returned["status"]) == (batch_id, None, "done")
    assert (returned["amount"], returned["current_balance"]) == (16, 80)
    result = success(key.get(f"/v1/reversals/{returned['reversal_id']}"))
    assert [row["id"] for row in result["transactions"]] == [part, last]
    assert outcomes(result) == [(6, None), (10, None)]
    # Nobody gets any of it now: no user, no caller, no second return.
    service.register(emails[0])
    assert service.points_of(emails[0]) == 0
    assert outcomes(taken(key, {"transactions": [last]})) == [(0, "already_reversed")]
    assert "went back" in refusal(_extend(key, last, {"held_until": _in_days(9)}), 409, "transaction")["transaction"][0]
    again = key.send(body, Idempotency_Key="once")
    assert {name: success(again, 201)[name] for name in ("amount", "current_balance")} == {
        "amount": 50,
        "current_balance": 50,
    }
    assert [row["state"] for row in again.json()["data"]["transactions"]] == ["credited", *["held"] * 4]


def test_a_reversal_takes_what_is_past_its_end_before_a_return_does(narrow: Service) -> None:
    acme = organization(narrow, 100)
    batch_id, [one] = send(acme.live, {"recipient": address(), "amount": 5, "hold_days": 1})
    with narrow.paused("worker"):
        let_days_pass(narrow, 1, batch_id)
        waiting = reverse(acme.live, {"batch": batch_id}, Prefer="respond-async")
        success(waiting, 202)
    until(lambda: _state(acme.live, one)[1] == 5, within_s=_RETURNED_WITHIN_S, every_s=0.5)
    assert _state(acme.live, one)[0] in ("reversed", "returned")  # Whichever came first; the points went back once.
