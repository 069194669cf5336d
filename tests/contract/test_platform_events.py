"""The platform's log: what happens to users and organizations is told once, in order, and without a name or address."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.contract.calls import TIMESTAMP, Key, Organization, address, refusal, success
from tests.contract.platform import Platform, platform
from tests.deadline import until
from tests.service.up import Service

_EVENTS = "/v1/platform/events"
_ORGANIZATIONS = "/v1/platform/organizations"


@pytest.fixture(scope="module")
def ours(service: Service) -> Platform:
    return platform(service)


def _log(ours: Key, **query: Any) -> dict[str, Any]:
    data: dict[str, Any] = success(ours.get(_EVENTS, **query))
    return data


def _events(ours: Key, **query: Any) -> list[dict[str, Any]]:
    """Return all events after a sequence, page by page."""
    found: list[dict[str, Any]] = []
    while events := _log(ours, **query)["events"]:
        found += events
        query["after"] = events[-1]["sequence"]
    return found


def _end(ours: Key) -> int:
    """Return the end of the log as it is told; others write in it, too."""
    return int(_log(ours, types="user.erased")["last_sequence"])


def test_calls_and_commands_are_told_alike_in_order_without_a_gap(
    service: Service, ours: Platform, tmp_path: Path
) -> None:
    since = _end(ours)
    emails = [address() for _ in range(7)]
    acme = success(ours.call("POST", _ORGANIZATIONS, json={"name": "Acme", "balance": 100, "sandbox_balance": 7}), 201)
    users = [ours.registered(emails[0], "Ada", "Lovelace")["id"]]
    users.append(service.json("users", "create", emails[1], "Grace", "Hopper")["id"])
    many = [{"email": email, "first_name": "Mary"} for email in (emails[2], "no address", emails[3], emails[0])]
    users += [one["user"]["id"] for one in success(ours.bulk(many))["users"] if one["status"] == "created"]
    people = tmp_path / "people.csv"
    people.write_text(f"email,first_name,last_name\n{emails[4]},Katherine,Johnson\n{emails[0]},Ada,Lovelace\n")
    service.command("users", "import", str(people))
    users.append(service.json("users", "show", emails[4])["id"])
    success(ours.register(emails[0]), 200)  # Nothing changes, so nothing is told.
    success(ours.change(users[0], first_name="Augusta", last_name="Lovelace", email=emails[5]))
    success(ours.change(users[0], first_name="Augusta"))
    refusal(ours.change(users[1], email=emails[5]), 409, "email")
    service.command("organizations", "refill", str(acme["id"]), "5")
    refill = {"amount": 3, "sandbox": True, "reference": "invoice-7"}
    for status in (201, 200):
        success(ours.call("POST", f"{_ORGANIZATIONS}/{acme['id']}/refills", json=refill), status)
    service.command("organizations", "suspend", str(acme["id"]))
    changes = {"is_disabled": True, "is_suspended": False}
    success(ours.call("PATCH", f"{_ORGANIZATIONS}/{acme['id']}", json=changes))
    service.command("organizations", "enable", str(acme["id"]))
    expected = [
        *("organization.created", "balance.refilled", "balance.refilled"),
        *["user.registered"] * 5,
        *("user.changed", "balance.refilled", "balance.refilled"),
        *("organization.suspended", "organization.disabled", "organization.resumed", "organization.enabled"),
    ]

    def of_ours() -> list[dict[str, Any]]:
        told = _events(ours, after=since, limit=4)
        assert [event["sequence"] for event in told] == list(range(since + 1, since + 1 + len(told)))
        return [event for event in told if _is_about(event, users, acme["id"])]

    until(lambda: len(of_ours()) >= len(expected), every_s=0.2)
    about = of_ours()
    assert [event["type"] for event in about] == expected
    assert all(TIMESTAMP.match(event["timestamp"]) for event in about)
    assert all((event["organization"], event["sandbox"]) == (None, False) for event in about)
    # A bulk registers in the order of the addresses.
    assert sorted(event["data"]["user"]["id"] for event in about[3:8]) == sorted(users)
    assert all(event["data"] == {"user": {"id": event["data"]["user"]["id"]}} for event in about[3:8])
    assert about[8]["data"] == {"user": {"id": users[0]}, "fields": ["email", "first_name"]}
    created, live, sandbox = (event["data"] for event in about[:3])
    assert created["organization"].keys() == live["organization"].keys()
    assert (created["organization"]["balance"], live["organization"]["balance"]) == (0, 100)
    assert (live["amount"], live["reference"], live["sandbox"]) == (100, None, False)
    assert (sandbox["amount"], sandbox["organization"]["balance"], sandbox["sandbox"]) == (7, 7, True)
    assert [event["data"]["reference"] for event in about[9:11]] == [None, "invoice-7"]
    assert about[11]["data"]["organization"]["is_suspended"] is True
    page = {"after": since, "limit": about[-1]["sequence"] - since}
    text = ours.get(_EVENTS, **page).text
    assert not [word for word in ("@", "Ada", "Augusta", "Grace", "Mary", "Katherine", "Lovelace") if word in text]
    assert ours.get(_EVENTS, **page).text == text, "the same bytes each time"


def _is_about(event: dict[str, Any], users: list[int], organization_id: int) -> bool:
    data = event["data"]
    return data["user"]["id"] in users if "user" in data else data["organization"]["id"] == organization_id


def test_the_log_of_an_organization_tells_its_own_part_and_the_platform_s_nothing_of_batches(
    acme: Organization, ours: Platform
) -> None:
    success(acme.live.send({"recipient": address(), "amount": 1}), 201)
    acme.refill(1)

    def types() -> list[str]:
        return [event["type"] for event in success(acme.live.get("/v1/events", limit=1_000))["events"]]

    until(lambda: types()[-2:] == ["batch.issued", "balance.refilled"], every_s=0.2)
    kinds = {event["type"].partition(".")[0] for event in _events(ours, limit=1_000)}
    assert kinds == {"user", "organization", "balance"}
    assert refusal(acme.live.get("/v1/events", types="user.registered"), 400, "types")
    assert "user.registered" in refusal(ours.get(_EVENTS, types="batch.issued"), 400, "types")["types"][0]


def test_a_key_reads_the_types_of_its_scopes_and_is_refused_the_others(service: Service, acme: Organization) -> None:
    of_users, of_organizations = platform(service, "users:read"), platform(service, "organizations:read")
    writing = platform(service, "users:change", "organizations:write")
    for types in ("user.*", "user.changed,user.registered"):
        assert all(event["type"].startswith("user.") for event in _log(of_users, types=types)["events"])
    found = _log(of_organizations, types="organization.*,balance.*")["events"]
    assert {event["type"].partition(".")[0] for event in found} == {"organization", "balance"}
    for key, types, needed in (
        (of_users, "*", "organizations:read"),
        (of_users, "*.c*", "organizations:read"),
        (of_users, "balance.refilled", "organizations:read"),
        (of_organizations, "*", "users:read"),
        (of_organizations, "user.erased", "users:read"),
        (writing, "*", "users:read"),
        (writing, "organization.created", "organizations:read"),
    ):
        answer = key.get(_EVENTS, **({} if types == "*" else {"types": types}))
        [sentence] = refusal(answer, 403, "authorization")["authorization"]
        assert needed in sentence
        assert answer.json()["additional_data"]["code"] == "insufficient_scope"
    for wrong in (acme.live, acme.development):
        answer = wrong.get(_EVENTS)
        refusal(answer, 403, "authorization")
        assert answer.json()["additional_data"]["code"] == "wrong_key"
    refusal(service.call("GET", _EVENTS), 401, "authorization")


def test_a_query_with_faults_is_refused_and_every_fault_is_named(ours: Platform) -> None:
    refusal(
        ours.get(f"{_EVENTS}?after=-1&types=user.lost&limit=0&wait=26&cursor=x"),
        400,
        *("after", "types", "limit", "wait", "cursor"),
    )
    beyond = _end(ours) + 100_000
    refusal(ours.get(_EVENTS, after=beyond), 400, "after")


def test_a_waiting_call_is_answered_by_a_registration_and_a_revoked_key_by_nothing(narrow: Service) -> None:
    ours, waiting = platform(narrow), platform(narrow, name="Waiting")
    end = _end(ours)
    while _log(ours, after=end, wait=1)["events"]:  # What was done before is still being told.
        end = _end(ours)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(_log, waiting, after=end, wait=25, types="user.registered")
        user = ours.registered(address())
        assert user["id"] in [event["data"]["user"]["id"] for event in call.result(40)["events"]]
    end = _end(ours)
    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(waiting.get, _EVENTS, after=end, wait=25)
        narrow.command("platform-keys", "revoke", str(waiting.id))
        ours.registered(address())
        assert refused.result(40).status_code == 401
