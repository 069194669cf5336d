"""Platform keys: who is let in, by which scope, and never to what is an organization's."""

import re
from typing import Any

import pytest

from tests.contract.calls import Key, Organization, address, nothing_changes, refusal, success
from tests.contract.platform import Platform, platform
from tests.service.up import Service

_USERS, _ORGANIZATIONS = "/v1/platform/users", "/v1/platform/organizations"
_ADA = {"email": "ada@example.com", "first_name": "Ada", "last_name": "Lovelace"}
# Each call of the platform with the scope that it needs.
_CALLS: list[tuple[str, str, Any, str]] = [
    ("POST", _USERS, _ADA, "users:register"),
    ("POST", f"{_USERS}/bulk", {"users": [_ADA]}, "users:register"),
    ("GET", _USERS, None, "users:read"),
    ("GET", f"{_USERS}/{{id}}", None, "users:read"),
    ("GET", f"{_USERS}/{{id}}/entries", None, "users:read"),
    ("PATCH", f"{_USERS}/{{id}}", {"last_name": "King"}, "users:change"),
    ("POST", f"{_USERS}/{{id}}/erase", None, "users:erase"),
    ("POST", _ORGANIZATIONS, {"name": "Acme"}, "organizations:write"),
    ("GET", _ORGANIZATIONS, None, "organizations:read"),
    ("GET", f"{_ORGANIZATIONS}/{{id}}", None, "organizations:read"),
    ("PATCH", f"{_ORGANIZATIONS}/{{id}}", {"name": "Acme"}, "organizations:write"),
    ("POST", f"{_ORGANIZATIONS}/{{id}}/refills", {"amount": 1}, "refills:write"),
    ("GET", f"{_ORGANIZATIONS}/{{id}}/refills", None, "organizations:read"),
    ("POST", f"{_ORGANIZATIONS}/{{id}}/keys", {"name": "Till"}, "keys:write"),
    ("GET", f"{_ORGANIZATIONS}/{{id}}/keys", None, "organizations:read"),
    ("DELETE", f"{_ORGANIZATIONS}/{{id}}/keys/{{key_id}}", None, "keys:write"),
    ("POST", f"{_ORGANIZATIONS}/{{id}}/members", _ADA | {"role": "viewer"}, "members:write"),
    ("GET", f"{_ORGANIZATIONS}/{{id}}/members", None, "members:read"),
    ("DELETE", f"{_ORGANIZATIONS}/{{id}}/members/{{member_id}}", None, "members:write"),
    ("POST", f"{_ORGANIZATIONS}/{{id}}/members/{{member_id}}/link", None, "members:write"),
    ("GET", "/v1/platform/actions", None, "organizations:read"),
]
_SCOPES = list(dict.fromkeys(needed for *_, needed in _CALLS))


def _call(key: Key, method: str, path: str, body: Any) -> Any:
    """Make a call about rows that there are not."""
    path = re.sub(r"\{\w+\}", "999999999", path)
    return key.call(method, path, **({} if body is None else {"json": body}))


@pytest.fixture(scope="module")
def whole(service: Service) -> Platform:
    return platform(service)


def test_a_platform_key_is_shown_once_and_listed_by_its_beginning(service: Service) -> None:
    made = service.json("platform-keys", "create", "Billing", "--scope", "users:read", "--scope", "refills:write")
    assert made["key"].startswith("pts_platform_")
    assert made["scopes"] == ["users:read", "refills:write"]
    [listed] = [one for one in service.json("platform-keys", "list") if one["id"] == made["id"]]
    assert (listed["name"], listed["scopes"]) == ("Billing", made["scopes"])
    assert made["key"].startswith(listed["start"])
    assert len(listed["start"]) == len("pts_platform_") + 4
    assert (listed["last_used_at"], listed["revoked_at"]) == (None, None)
    everything = service.json("platform-keys", "create", "Everything")
    assert set(everything["scopes"]) == set(_SCOPES)
    service.command("platform-keys", "create", "Wrong", "--scope", "users:write", status=2)
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


def test_each_call_needs_its_own_scope_which_is_named_before_any_fault(service: Service) -> None:
    described = service.call("GET", "/openapi.json").json()["paths"]
    ours = {
        (method.upper(), path): operation["description"].rpartition("Scope: ")[2]
        for path, operations in described.items()
        for method, operation in operations.items()
        if path.startswith("/v1/platform/") and path != "/v1/platform/events"
    }
    assert ours == {(method, path): f"`{needed}`." for method, path, _, needed in _CALLS}
    half_of = {"users:read", "users:change", "organizations:read", "keys:write", "members:write"}
    halves = half_of, set(_SCOPES) - half_of
    keys = [platform(service, *half) for half in halves]
    for method, path, body, needed in _CALLS:
        for half, key in zip(halves, keys, strict=True):
            for given in (body, None if body is None else {"nonsense": 1}):
                answer = _call(key, method, path, given)
                if needed in half:
                    assert answer.status_code in (200, 201, 400, 404, 409), (method, path)
                    continue
                [sentence] = refusal(answer, 403, "authorization")["authorization"]
                assert answer.json()["additional_data"]["code"] == "insufficient_scope"
                assert f"the scope {needed}," in sentence
