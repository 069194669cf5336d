"""The keys of an organization, made by the platform: shown once, listed by their beginning, revoked at once."""

from typing import Any

import pytest

from tests.contract.calls import TIMESTAMP, Key, Organization, address, refusal, success
from tests.contract.platform import Platform, platform
from tests.deadline import until
from tests.service.up import Service

_KEY = {"id", "organization_id", "sandbox", "name", "start", "created_at", "last_used_at", "revoked_at"}
_KEY |= {"scopes", "expires_at", "batch_limit", "daily_limit", "made_by"}


@pytest.fixture(scope="module")
def ours(service: Service) -> Platform:
    return platform(service)


@pytest.fixture(scope="module")
def shop(ours: Platform) -> int:
    made = success(ours.call("POST", "/v1/platform/organizations", json={"name": "Shop", "balance": 100}), 201)
    return int(made["id"])


def _keys(organization_id: int, key_id: int | str = "") -> str:
    return f"/v1/platform/organizations/{organization_id}/keys{key_id and '/'}{key_id}"


def _make(ours: Platform, organization_id: int, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = success(ours.call("POST", _keys(organization_id), json=body), 201)
    return made


def test_a_key_is_made_as_by_the_command_used_and_revoked(service: Service, ours: Platform, shop: int) -> None:
    till = _make(ours, shop, name="  Till ")
    assert till.keys() == service.json("keys", "create", str(shop)).keys()
    assert (till["name"], till["sandbox"], till["organization_id"]) == ("Till", False, shop)
    live = Key(service, till["key"])
    [sent] = success(live.send({"recipient": address(), "amount": 1}), 201)["transactions"]
    assert (sent["sandbox"], sent["organization"]["balance"]) == (False, 99)
    development = _make(ours, shop, sandbox=True, name=None)
    assert development["key"].startswith("pts_dev_")
    assert Key(service, development["key"]).balance == 1_000_000

    listed = success(ours.get(_keys(shop)))
    assert listed["next_cursor"] is None
    assert all(set(one) == _KEY for one in listed["keys"])
    assert listed["keys"][0]["id"] == development["id"]
    by_id = {one["id"]: one for one in listed["keys"]}
    assert by_id[till["id"]]["start"] == till["key"][: len("pts_live_") + 4]
    assert TIMESTAMP.match(by_id[till["id"]]["last_used_at"])
    assert till["key"] not in ours.get(_keys(shop)).text
    of_command = {one["id"]: one for one in service.json("keys", "list", str(shop))}
    assert {key_id: {name: one[name] for name in _KEY} for key_id, one in of_command.items()} == by_id

    for _ in range(2):
        answer = ours.call("DELETE", _keys(shop, till["id"]))
        assert (answer.status_code, answer.content) == (204, b"")
    refusal(live.get("/v1/organization"), 401, "authorization")
    [revoked] = [one for one in success(ours.get(_keys(shop)))["keys"] if one["id"] == till["id"]]
    assert TIMESTAMP.match(revoked["revoked_at"])
    assert Key(service, development["key"]).balance == 1_000_000
    made = _make(ours, shop)
    reader = Key(service, made["key"])
    until(lambda: ("key.created", made["id"]) in _told(reader), every_s=0.2)
    told = [key_id for kind, key_id in _told(reader) if kind == "key.revoked"]
    assert told == [till["id"]], "revoking it again tells nothing"


def test_a_key_is_made_with_bounds_and_keeps_them(service: Service, ours: Platform, shop: int) -> None:
    bounds: dict[str, Any] = {"scopes": ["read", "send"], "expires_at": "2999-12-31T18:00:00.000000Z"}
    bounds |= {"batch_limit": 5, "daily_limit": 7}
    made = _make(ours, shop, **bounds | {"scopes": ["send", "read"]})
    assert made | bounds == made
    [listed] = [one for one in success(ours.get(_keys(shop)))["keys"] if one["id"] == made["id"]]
    assert listed | bounds == listed
    till = Key(service, made["key"])
    for amount in (5, 6, 3):
        answer = till.send({"recipient": address(), "amount": amount})
        assert answer.status_code == (201 if amount == 5 else 403), answer.text
    refusal(till.get("/v1/webhooks"), 403, "authorization")
    bad = {"scopes": ["write"], "expires_at": "2020-12-31", "batch_limit": 0, "daily_limit": True}
    named = ("scopes.0", "expires_at", "batch_limit", "daily_limit")
    refusal(ours.call("POST", _keys(shop), json=bad), 400, *named)


def _told(key: Key) -> list[tuple[str, int]]:
    events = success(key.get("/v1/events", types="key.*"))["events"]
    return [(event["type"], event["data"]["key"]["id"]) for event in events]


def test_keys_are_listed_newest_first_page_by_page(ours: Platform) -> None:
    shop = success(ours.call("POST", "/v1/platform/organizations", json={"name": "Pages"}), 201)["id"]
    made = [_make(ours, shop, name=f"Key {number}")["id"] for number in range(3)]
    first = success(ours.get(_keys(shop), limit=2))
    _make(ours, shop)  # Who comes meanwhile moves no page.
    second = success(ours.get(_keys(shop), limit=2, cursor=first["next_cursor"]))
    assert [one["id"] for one in first["keys"] + second["keys"]] == made[::-1]
    assert second["next_cursor"] is None
    for query, field in (({"limit": "0"}, "limit"), ({"cursor": "A" * 38}, "cursor"), ({"sandbox": "true"}, "sandbox")):
        refusal(ours.get(_keys(shop), **query), 400, field)


def test_every_fault_is_named_and_makes_no_key(ours: Platform, shop: int) -> None:
    before = success(ours.get(_keys(shop)))
    for name in (" ", "x" * 101, "two\nlines", "right\u202eleft", "no\0thing", 7, ["Till"]):
        refusal(ours.call("POST", _keys(shop), json={"name": name}), 400, "name")
    bad = {"name": " ", "sandbox": "yes", "organization": 1}
    refusal(ours.call("POST", _keys(shop), json=bad), 400, *bad)
    refusal(ours.call("DELETE", _keys(shop, 1), json={"id": 1}), 400, "id")
    assert success(ours.get(_keys(shop))) == before


def test_a_foreign_or_missing_key_or_organization_is_not_found(
    service: Service, acme: Organization, ours: Platform, shop: int
) -> None:
    theirs = _make(ours, acme.id)
    for organization_id, key_id, field in (
        *((shop, theirs["id"], "key"), (shop, "9" * 400, "key"), (0, 0, "key")),
        ("9" * 400, theirs["id"], "organization"),
    ):
        answer = ours.call("DELETE", f"/v1/platform/organizations/{organization_id}/keys/{key_id}")
        refusal(answer, 404, field)
    success(Key(service, theirs["key"]).get("/v1/organization"))
    for number in ("0", "999999999", "9" * 400):
        path = f"/v1/platform/organizations/{number}/keys"
        refusal(ours.get(path), 404, "organization")
        refusal(ours.call("POST", path, json={}), 404, "organization")
