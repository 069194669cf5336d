"""`GET /v1/platform/actions` and `points actions`: who did what, newest first."""

import getpass
from typing import Any

from tests.contract.calls import TIMESTAMP, address, organization, refusal, success
from tests.contract.platform import platform
from tests.service.up import Service

_ACTIONS = "/v1/platform/actions"
_ACTION = {"id", "created_at", "action", "by", "organization", "subject_id", "sandbox", "detail"}


def test_what_a_key_and_an_operator_did_is_told_alike_to_the_platform_and_to_operators(service: Service) -> None:
    ours = platform(service, name="Billing")
    user = ours.registered(address())
    made = success(ours.call("POST", "/v1/platform/organizations", json={"name": "Acme", "sandbox_balance": 0}), 201)
    number = str(made["id"])
    service.command("organizations", "refill", number, "50")

    def actions(**query: Any) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = success(ours.get(_ACTIONS, **query))["actions"]
        return listed

    ours_alone = actions(by=f"platform_key:{ours.id}")
    assert [(one["action"], one["subject_id"]) for one in ours_alone] == [
        ("organization.made", made["id"]),
        ("user.registered", user["id"]),
    ]
    for one in ours_alone:
        assert set(one) == _ACTION
        assert TIMESTAMP.match(one["created_at"])
        assert one["by"] == {"type": "platform_key", "id": ours.id, "name": "Billing"}
    refilled, organization_made = actions(organization=number)
    assert organization_made == ours_alone[0]
    assert refilled["by"] == {"type": "operator", "id": None, "name": getpass.getuser()}
    assert refilled["organization"] == {"id": made["id"], "name": "Acme"}
    assert (refilled["sandbox"], refilled["detail"]) == (False, "50")
    assert actions(organization=number, by="operator") == [refilled]
    assert actions(organization=number, created_from=refilled["created_at"]) == [refilled]
    assert actions(organization=number, created_to=organization_made["created_at"]) == [organization_made]
    first = success(ours.get(_ACTIONS, organization=number, limit=1))
    assert first["actions"] == [refilled]
    rest = success(ours.get(_ACTIONS, organization=number, limit=1, cursor=first["next_cursor"]))
    assert rest == {"actions": [organization_made], "next_cursor": None}

    assert service.json("actions", "--organization", number) == [refilled, organization_made]
    assert service.json("actions", "--organization", number, "--limit", "1") == [refilled]
    told = service.command("actions", "--by", f"platform_key:{ours.id}").stdout
    assert "platform key" in told
    assert user["email"] not in told
    assert "--by must be member, platform_key or operator" in service.command("actions", "--by", "ada", status=2).stderr
    assert service.command("actions", "--organization", "999999", status=1).stderr == (
        "points: There is no organization 999999.\n"
    )


def test_every_fault_of_the_query_is_named_and_the_scope_is_needed(service: Service) -> None:
    ours = platform(service, "organizations:read")
    bad = {"by": "ada", "organization": "0", "created_from": "today", "created_to": "1", "limit": "0", "cursor": "x"}
    refusal(ours.get(_ACTIONS, **bad, user="1"), 400, *bad, "user")
    for by in ("member:", "member:0", "member:9223372036854775808", "operator:a b", "key:1", "platform_key:x"):
        refusal(ours.get(_ACTIONS, by=by), 400, "by")
    other = success(ours.get(_ACTIONS, limit=1, by="operator"))["next_cursor"]
    if other is not None:
        refusal(ours.get(_ACTIONS, limit=1, by="member", cursor=other), 400, "cursor")
    answer = platform(service, "organizations:write", "users:read").get(_ACTIONS)
    assert "organizations:read" in refusal(answer, 403, "authorization")["authorization"][0]
    refusal(organization(service).live.get(_ACTIONS), 403, "authorization")
