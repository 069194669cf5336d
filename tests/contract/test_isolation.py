"""One organization never sees or changes what is another's, nor a mode what is the other mode's."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.calls import (
    HELD,
    PAID,
    UNPAID,
    Key,
    Organization,
    address,
    addresses,
    flags,
    organization,
    refusal,
    success,
)
from tests.contract.described import description
from tests.deadline import until
from tests.service.up import Service


def test_what_is_anothers_is_404_in_the_words_of_what_is_not_there(acme: Organization, globex: Organization) -> None:
    answer = acme.live.send({"recipient": address(), "amount": 1})
    [one] = success(answer, 201)["transactions"]
    batch_id = answer.json()["additional_data"]["batch_id"]
    for key in (acme.development, globex.live, globex.development):
        for path, noun, number in (("batches", "batch", batch_id), ("transactions", "transaction", one["id"])):
            foreign = refusal(key.get(f"/v1/{path}/{number}"), 404, noun)
            absent = refusal(key.get(f"/v1/{path}/999999999"), 404, noun)
            assert foreign[noun][0].replace(str(number), "N") == absent[noun][0].replace("999999999", "N")
            assert key.listed(path, batch=batch_id) == []
            assert key.listed(path, email=one["email"]) == []


@pytest.mark.parametrize("number", ["0", "999999999", str(2**63 - 1), str(2**63), "9" * 400])
def test_a_number_that_names_nothing_is_404(acme: Organization, number: str) -> None:
    refusal(acme.live.get(f"/v1/batches/{number}"), 404, "batch")
    refusal(acme.live.get(f"/v1/transactions/{number}"), 404, "transaction")


def test_sends_and_suspensions_leave_other_organizations_alone(acme: Organization, globex: Organization) -> None:
    before = success(globex.live.get("/v1/organization"))
    success(acme.live.send({"recipient": address(), "amount": 1_000}), 201)
    with acme.stopped():
        assert success(globex.live.get("/v1/organization")) == before
        success(globex.live.send({"recipient": address(), "amount": 1}), 201)


def test_a_development_key_issues_by_the_same_rules_and_nothing_live_changes(service: Service) -> None:
    made = organization(service, 100, sandbox_balance=50)
    live, development = made.live, made.development
    with_account, later, unpaid = addresses(3)
    service.register(with_account)
    development.add_user(with_account)
    verified = development.verify({"recipients": addresses(3), "amount": 20})
    assert success(verified)["validated"] is False
    assert verified.json()["additional_data"]["available"] == 50
    data = success(development.send({"recipients": [with_account, later, unpaid], "amount": 20}), 201)
    assert [one["sandbox"] for one in data["transactions"]] == [True] * 3
    assert flags(data["transactions"]) == [PAID, HELD, UNPAID]
    assert [one["organization"]["balance"] for one in data["transactions"]] == [30, 10, 10]
    assert {one["organization"]["last_refill"] for one in data["transactions"]} == {50}
    assert (data["amount"], data["current_balance"]) == (40, 10)
    assert (development.balance, live.balance) == (10, 100)
    assert service.points_of(with_account) == 0
    # Nobody holds sandbox points for the one who registers later.
    assert service.register(later)["balance"] == 0
    assert flags(development.listed("transactions", email=later)) == [HELD]

    [real] = success(live.send({"recipient": with_account, "amount": 30}), 201)["transactions"]
    assert (real["sandbox"], real["organization"]["balance"], real["organization"]["last_refill"]) == (False, 70, 100)
    assert development.balance == 10
    assert service.points_of(with_account) == 30
    assert [one["id"] for one in live.listed("transactions")] == [real["id"]]
    assert len(development.listed("transactions")) == 3

    # A reset is for a development key alone, and puts the start value back, also of one who may not issue.
    refusal(live.call("POST", "/v1/sandbox/reset"), 403, "authorization")
    assert development.balance == 10
    with made.stopped():
        reset = success(development.call("POST", "/v1/sandbox/reset"))
        assert reset == success(development.get("/v1/organization"))
    assert (reset["balance"], reset["last_refill"]) == (50, 50)
    assert (live.balance, len(development.listed("transactions"))) == (70, 3)


# What a development key may call, with what a caller would give to learn who has a live account. `known` and `later`
# are the addresses, `user` is the id of a live user, and the others are ids of what was made before.
_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("POST /v1/points/verify", {"recipients": ["{known}", "{later}"], "amount": 5}),
    ("POST /v1/points/send", {"items": [{"email": "{known}", "amount": 10**9}]}),
    ("POST /v1/points/send", {"recipients": ["{known}", "{later}"], "amount": 5, "hold_days": 9}),
    ("POST /v1/points/sent-before", {"recipients": ["{known}", "{later}"], "amount": 5}),
    ("GET /v1/batches", {"email": "{known}", "credited": "true"}),
    ("GET /v1/batches/{batch}", {}),
    ("GET /v1/batches/{batch}/recipients", {}),
    ("GET /v1/transactions", {}),
    *(("GET /v1/transactions", {"email": f"{{{name}}}"}) for name in ("known", "later")),
    *(("GET /v1/transactions", {name: value}) for name, value in (("credited", "true"), ("state", "held"))),
    ("GET /v1/transactions", {"user": "{user}"}),
    ("GET /v1/transactions/{transaction}", {}),
    ("POST /v1/transactions/{transaction}/extend", {"held_until": "{next_month}"}),
    ("POST /v1/points/reverse/verify", {"batch": "{batch}", "reason": "R"}),
    ("POST /v1/points/reverse", {"batch": "{batch}", "amount": 1, "reason": "R"}),
    ("GET /v1/reversals", {}),
    ("GET /v1/reversals/{reversal}", {}),
    ("POST /v1/points/send", {"recipient": "{known}", "amount": 5, "send_at": "{next_month}"}),
    ("POST /v1/batches/{batch}/approve", {}),
    ("POST /v1/batches/{batch}/reject", {"reason": "R"}),
    ("PATCH /v1/batches/{batch}", {"send_at": "{next_month}"}),
    ("POST /v1/batches/{batch}/cancel", {}),
    ("POST /v1/sandbox/clock", {"now": "{tomorrow}"}),
    *(("POST /v1/sandbox/users", {"email": "{known}", "first_name": name}) for name in ("Ada", "Eve")),
    ("POST /v1/points/send", {"recipients": ["{known}", "{later}"], "amount": 5}),
    ("POST /v1/sandbox/reset", {}),
    ("GET /v1/organization", {}),
    ("GET /v1/statement", {"from": "2026-01-01", "to": "2026-01-31"}),
    ("GET /v1/events", {}),
]
# They have neither addresses nor users.
_WITHOUT_USERS = ("/v1/webhooks", "/v1/requests")


def test_no_answer_to_a_development_key_depends_on_who_has_a_live_account(service: Service) -> None:
    described = {
        f"{method.upper()} {path.replace('{id}', '{}')}"
        for path, methods in description(service.url)["paths"].items()
        for method in methods
        if path.startswith("/v1/") and not path.startswith(("/v1/platform/", *_WITHOUT_USERS))
    }
    assert described <= {re.sub(r"{\w+}", "{}", call) for call, _ in _CALLS}
    (known, later), strangers = addresses(2), addresses(2)
    user_id = service.register(known)["id"]
    makers = [organization(service, 0, sandbox_balance=1_000).development for _ in range(2)]
    callers = [
        _Curious(makers[0], {"known": known, "later": later, "user": user_id}),
        _Curious(makers[1], {"known": strangers[0], "later": strangers[1], "user": 10**12}),
    ]
    for number, (call, given) in enumerate(_CALLS):
        if number == 4:
            service.register(later)
        if call == "GET /v1/events":
            until(lambda: all(caller.has_all_events() for caller in callers))
        with_account, without = (caller.learns(call, given) for caller in callers)
        assert with_account == without, call


class _Curious:
    """A caller with a development key, who fills in the calls, and looks at all but ids and times of the answers."""

    def __init__(self, key: Key, names: dict[str, Any]) -> None:
        tomorrow, next_month = ((datetime.now(UTC) + timedelta(days=days)).isoformat() for days in (1, 31))
        self._key, self._names = key, names | {"tomorrow": tomorrow, "next_month": next_month}

    def has_all_events(self) -> bool:
        """Tell whether the reset, the last that is done, has its number: it refills, as the opening balance did."""
        events = success(self._key.get("/v1/events"))["events"]
        return [event["type"] for event in events].count("balance.refilled") == 2

    def learns(self, call: str, given: dict[str, Any]) -> Any:
        method, path = self._filled(call).split()
        given = self._filled(given)
        answer = self._key.call(method, path, **{"params" if method == "GET" else "json": given})
        assert answer.status_code in (200, 201, 202, 403, 404, 409), answer.text
        document = answer.json()
        data = document["data"] or {}
        self._names |= {name: data[f"{name}_id"] for name in ("batch", "reversal") if f"{name}_id" in data}
        if call == "POST /v1/points/send" and data.get("transactions"):
            of_first = {"batch": document["additional_data"]["batch_id"], "transaction": data["transactions"][0]["id"]}
            self._names |= of_first
        return answer.status_code, self._alike(document)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(inner) for inner in value]
        if not isinstance(value, str):
            return value
        named = re.fullmatch(r"{(\w+)}", value)
        return self._names[named[1]] if named else value.format_map(self._names)

    def _alike(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._alike(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._alike(inner, name) for inner in value]
        if name == "id" or name.endswith(("_id", "_cursor")) or (name == "transactions" and isinstance(value, int)):
            return type(value)
        if not isinstance(value, str):
            return value
        for known in ("known", "later"):
            value = value.replace(self._names[known], known)
        return re.sub(r"\d+", "N", value)
