"""Platform keys: who is let in, by which scope, and never to what is an organization's."""

from typing import Any

import pytest

from tests.contract.calls import Key, Organization, address, nothing_changes, refusal, success
from tests.contract.platform import Platform, platform
from tests.service.up import Service

_USERS = "/v1/platform/users"
_ADA = {"email": "ada@example.com", "first_name": "Ada", "last_name": "Lovelace"}
# Each call of the platform with the scope that it needs.
_CALLS: list[tuple[str, str, Any, str]] = [
    ("POST", _USERS, _ADA, "users:write"),
    ("POST", f"{_USERS}/bulk", {"users": [_ADA]}, "users:write"),
    ("GET", _USERS, None, "users:read"),
    ("GET", f"{_USERS}/1", None, "users:read"),
    ("GET", f"{_USERS}/1/entries", None, "users:read"),
    ("PATCH", f"{_USERS}/1", {"last_name": "King"}, "users:write"),
]


def _call(key: Key, method: str, path: str, body: Any) -> Any:
    return key.call(method, path, **({} if body is None else {"json": body}))


@pytest.fixture(scope="module")
def whole(service: Service) -> Platform:
    return platform(service)


def test_a_platform_key_is_shown_once_and_listed_by_its_beginning(service: Service) -> None:
    made = service.json("platform-keys", "create", "Billing", "--scope", "users:read", "--scope", "organizations:write")
    assert made["key"].startswith("pts_platform_")
    assert made["scopes"] == ["users:read", "organizations:write"]
    [listed] = [one for one in service.json("platform-keys", "list") if one["id"] == made["id"]]
    assert (listed["name"], listed["scopes"]) == ("Billing", made["scopes"])
    assert made["key"].startswith(listed["start"])
    assert len(listed["start"]) == len("pts_platform_") + 4
    assert (listed["last_used_at"], listed["revoked_at"]) == (None, None)
    everything = service.json("platform-keys", "create", "Everything")
    assert everything["scopes"] == ["users:read", "users:write", "organizations:read", "organizations:write"]
    service.command("platform-keys", "create", "Wrong", "--scope", "users", status=2)
    service.command("platform-keys", "create", " ", status=1)


def test_a_revoked_or_unknown_platform_key_is_401_in_the_words_of_every_other(
    service: Service, acme: Organization
) -> None:
    key = platform(service, name="Revoked")
    success(key.get(_USERS))
    first = service.json("platform-keys", "revoke", str(key.id))
    assert service.json("platform-keys", "revoke", str(key.id)) == first
    service.command("platform-keys", "revoke", "999999", status=1)
    unknown = key.text[:-5] + ("aaaaa" if key.text[-5:] != "aaaaa" else "bbbbb")
    words = refusal(acme.service.call("GET", _USERS), 401, "authorization")
    for text in (key.text, unknown, "nonsense", key.text.replace("pts_platform_", "pts_live_")):
        for method, path, body, _ in _CALLS:
            answer = _call(Key(service, text), method, path, body)
            assert refusal(answer, 401, "authorization") == words
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        for path in ("/v1/organization", "/v1/batches"):
            assert refusal(Key(service, text).get(path), 401, "authorization") == words
        refusal(Key(service, text).send({"recipient": address(), "amount": 1}), 401, "authorization")


def test_a_key_of_the_wrong_kind_opens_nothing(acme: Organization, whole: Platform) -> None:
    for key in (acme.live, acme.development):
        for method, path, body, _ in _CALLS:
            answer = _call(key, method, path, body)
            refusal(answer, 403, "authorization")
            assert answer.json()["additional_data"]["code"] == "wrong_key"
    with nothing_changes(acme.live):
        for method, path, body in (
            *(("GET", path, None) for path in ("/v1/organization", "/v1/batches", "/v1/transactions/1", "/v1/events")),
            ("POST", "/v1/points/verify", {"recipient": address(), "amount": 1}),
            ("POST", "/v1/points/send", {"recipient": address(), "amount": 1}),
            ("POST", "/v1/points/send", {"amount": 0}),
            ("POST", "/v1/sandbox/reset", None),
            ("POST", "/v1/webhooks", {"url": "https://example.com"}),
        ):
            answer = _call(whole, method, path, body)
            refusal(answer, 403, "authorization")
            assert answer.json()["additional_data"]["code"] == "wrong_key"


def test_a_missing_scope_is_403_and_named_before_any_fault(service: Service) -> None:
    keys = {
        missing: platform(service, *({"users:read", "users:write", "organizations:read"} - {missing}))
        for missing in ("users:read", "users:write")
    }
    for method, path, body, needed in _CALLS:
        for refused in (body, None if body is None else {"nonsense": 1}):
            answer = _call(keys[needed], method, path, refused)
            [sentence] = refusal(answer, 403, "authorization")["authorization"]
            assert answer.json()["additional_data"]["code"] == "insufficient_scope"
            assert needed in sentence
    success(keys["users:write"].get(_USERS, limit=1))
    success(keys["users:read"].register(address()), 201)
