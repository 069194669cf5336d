"""The platform's organizations: made, changed, refilled once, and given members; the same as by the commands."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.contract.calls import ORGANIZATION, TIMESTAMP, Organization, address, refusal, success
from tests.contract.platform import Platform, platform
from tests.deadline import until
from tests.service.up import Service

_ORGANIZATIONS = "/v1/platform/organizations"
_WHOLE = ORGANIZATION | {"external_id", "sandbox_balance", "sandbox_last_refill", "held_days", "low_balance"}
_WHOLE |= {"approval_above", "approval_of", "requires_second_factor"}


@pytest.fixture(scope="module")
def ours(service: Service) -> Platform:
    return platform(service)


def _make(ours: Platform, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = success(ours.call("POST", _ORGANIZATIONS, json={"name": "Acme", **more}), 201)
    return made


def _change(ours: Platform, organization_id: int, **changes: Any) -> httpx.Response:
    return ours.call("PATCH", f"{_ORGANIZATIONS}/{organization_id}", json=changes)


def _refill(ours: Platform, organization_id: int, key: str | None = None, **body: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return ours.call("POST", f"{_ORGANIZATIONS}/{organization_id}/refills", json=body, headers=headers)


def test_an_organization_is_made_found_and_the_same_as_by_the_commands(service: Service, ours: Platform) -> None:
    answer = ours.call(
        "POST", _ORGANIZATIONS, json={"name": " Globex ", "balance": 100, "sandbox_balance": 7, "held_days": 30}
    )
    made = success(answer, 201)
    assert set(made) == _WHOLE
    assert answer.headers["Location"] == f"{_ORGANIZATIONS}/{made['id']}"
    told = {"name": "Globex", "balance": 100, "last_refill": 100, "sandbox_balance": 7, "sandbox_last_refill": 7}
    assert made | told | {"held_days": 30, "low_balance": None} == made
    assert (made["is_disabled"], made["is_suspended"]) == (False, False)
    assert service.json("organizations", "show", str(made["id"])) == made
    assert success(ours.get(f"{_ORGANIZATIONS}/{made['id']}")) == made
    plain = _make(ours)
    assert (plain["balance"], plain["sandbox_balance"], plain["held_days"]) == (0, 1_000_000, None)
    listed = ours.listed("platform/organizations", limit=1_000)  # Others make organizations meanwhile.
    assert [one for one in listed if one["id"] in (made["id"], plain["id"])] == [plain, made]
    first = success(ours.get(_ORGANIZATIONS, limit=1))
    second = success(ours.get(_ORGANIZATIONS, limit=1, cursor=first["next_cursor"]))
    newer, older = (page["organizations"][0]["id"] for page in (first, second))
    assert newer > older
    for number in ("0", "999999999", "9" * 400):
        refusal(ours.get(f"{_ORGANIZATIONS}/{number}"), 404, "organization")
        refusal(ours.call("PATCH", f"{_ORGANIZATIONS}/{number}", json={"name": "x"}), 404, "organization")
        refusal(ours.get(f"{_ORGANIZATIONS}/{number}/refills"), 404, "organization")
        refusal(ours.call("POST", f"{_ORGANIZATIONS}/{number}/refills", json={"amount": 1}), 404, "organization")


def test_a_change_holds_at_once_and_only_for_what_is_sent(service: Service, ours: Platform) -> None:
    made = _make(ours, balance=100, low_balance=5)
    key = Organization(service, made["id"]).live
    suspended = success(_change(ours, made["id"], is_suspended=True))
    assert suspended == made | {"is_suspended": True}
    refusal(key.send({"recipient": address(), "amount": 1}), 403, "organization")
    changed = success(_change(ours, made["id"], is_suspended=False, name="Umbrella", held_days=7, low_balance=None))
    assert changed == made | {"name": "Umbrella", "held_days": 7, "low_balance": None}
    [sent] = success(key.send({"recipient": address(), "amount": 1}), 201)["transactions"]
    assert sent["organization"]["name"] == "Umbrella"
    assert sent["held_until"] is not None
    wanted = ["balance.refilled", "key.created", "organization.suspended", "organization.resumed"]

    def types() -> list[str]:
        return [event["type"] for event in success(key.get("/v1/events"))["events"]]

    until(lambda: types()[:4] == wanted, every_s=0.1)


def test_every_fault_of_an_organization_is_named(ours: Platform) -> None:
    def faults(method: str, path: str, body: Any, *fields: str) -> None:
        refusal(ours.call(method, path, json=body), 400, *fields)

    bad = {
        "name": " ",
        "balance": -1,
        "sandbox_balance": 2**63,
        "held_days": 0,
        "low_balance": "5",
        "is_suspended": True,
    }
    faults("POST", _ORGANIZATIONS, bad, *bad)
    faults("POST", _ORGANIZATIONS, {}, "name")
    made = _make(ours)
    path = f"{_ORGANIZATIONS}/{made['id']}"
    bad = {"name": None, "balance": 5, "held_days": 3_651, "low_balance": 0, "is_suspended": "yes", "is_disabled": None}
    faults("PATCH", path, bad, *bad)
    faults("PATCH", path, {}, "body")
    for amount in (0, 1.0, "1", True, None, 2**63, -(2**63)):
        faults("POST", f"{path}/refills", {"amount": amount, "reference": "r"}, "amount")
    for none in ({}, {"reference": None}):
        faults("POST", f"{path}/refills", {"amount": -1, **none}, "reference")
    faults("POST", f"{path}/refills", {"amount": 1, "reference": "a b", "sandbox": 1}, "reference", "sandbox")
    refusal(_refill(ours, made["id"], "a b", amount=1), 400, "idempotency_key")
    member = {"email": "mary", "first_name": "", "role": "owner", "organization": 1}
    faults("POST", f"{path}/members", member, *member)
    for query, field in ({"limit": 0}, "limit"), ({"sandbox": "yes"}, "sandbox"), ({"after": 1}, "after"):
        refusal(ours.get(f"{path}/refills", **query), 400, field)
    assert success(ours.get(path)) == made


def test_a_refill_is_booked_once_for_its_key_and_its_reference(ours: Platform) -> None:
    made = _make(ours, sandbox_balance=7)
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: _refill(ours, made["id"], "once", amount=50, reference="invoice-7"), range(8))
        )
    booked = [success(answer, 201) for answer in answers]
    assert all(one == booked[0] for one in booked)
    assert sorted("Idempotency-Replayed" in answer.headers for answer in answers) == [False] + [True] * 7
    assert booked[0] | {"id": 0, "created_at": ""} == {
        "id": 0,
        "sandbox": False,
        "amount": 50,
        "balance": 50,
        "reference": "invoice-7",
        "created_at": "",
    }
    assert TIMESTAMP.match(booked[0]["created_at"])
    # The reference alone is enough, and the answer is the refill as it was.
    success(_refill(ours, made["id"], amount=1), 201)
    assert success(_refill(ours, made["id"], amount=50, reference="invoice-7"), 200) == booked[0]
    assert success(_refill(ours, made["id"], "another", amount=50, reference="invoice-7"), 200) == booked[0]
    others: list[dict[str, Any]]
    others = [{"amount": 51, "reference": "invoice-7"}, {"amount": 50}, {"amount": 50, "sandbox": True}]
    for body in others:
        refusal(_refill(ours, made["id"], "once", **body), 422, "idempotency_key")
    for more in others[0], others[2] | {"reference": "invoice-7"}:
        refusal(_refill(ours, made["id"], **more), 409, "reference")
    refusal(_refill(ours, made["id"], amount=2**63 - 1), 409, "amount")
    assert success(_refill(ours, made["id"], "once-more", amount=3, sandbox=True), 201)["balance"] == 10

    shown = success(ours.get(f"{_ORGANIZATIONS}/{made['id']}"))
    assert (shown["balance"], shown["last_refill"], shown["sandbox_balance"]) == (51, 51, 10)
    live = success(ours.get(f"{_ORGANIZATIONS}/{made['id']}/refills", limit=1))
    assert [one["amount"] for one in live["refills"]] == [1]
    rest = success(ours.get(f"{_ORGANIZATIONS}/{made['id']}/refills", limit=1, cursor=live["next_cursor"]))
    assert rest == {"refills": [booked[0]], "next_cursor": None}
    sandbox = success(ours.get(f"{_ORGANIZATIONS}/{made['id']}/refills", sandbox="true"))["refills"]
    assert [(one["amount"], one["balance"]) for one in sandbox] == [(3, 10), (7, 7)]
    # A key is its organization's own.
    assert success(_refill(ours, _make(ours)["id"], "once", amount=2), 201)["balance"] == 2


def test_a_correction_takes_points_off_and_is_seen_wherever_a_refill_is(service: Service, ours: Platform) -> None:
    made = _make(ours, balance=100, low_balance=50)
    correction: dict[str, Any] = {"amount": -60, "reference": "wrong"}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: _refill(ours, made["id"], **correction), range(4)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [201]
    [booked] = {answer.json()["data"]["id"]: answer.json()["data"] for answer in answers}.values()
    assert (booked["amount"], booked["balance"], booked["reference"]) == (-60, 40, "wrong")
    told = _refill(ours, made["id"], amount=-41, reference="more")
    assert "balance of 40" in refusal(told, 409, "amount")["amount"][0]
    assert told.json()["additional_data"]["code"] == "correction_too_large"
    number = str(made["id"])
    assert service.json("organizations", "refill", number, "--", "-5", "--reference", "by-hand")["balance"] == 35
    assert service.json("organizations", "refill", number, "-5", "--reference", "by-hand")["balance"] == 35
    assert "reference" in service.command("organizations", "refill", number, "-5", status=1).stderr
    sandbox = success(_refill(ours, made["id"], amount=-1_000_000, reference="all", sandbox=True), 201)
    assert sandbox["balance"] == 0

    shown = success(ours.get(f"{_ORGANIZATIONS}/{made['id']}"))
    assert (shown["balance"], shown["last_refill"], shown["sandbox_last_refill"]) == (35, 35, 0)
    listed = success(ours.get(f"{_ORGANIZATIONS}/{made['id']}/refills"))["refills"]
    assert [(one["amount"], one["balance"]) for one in listed] == [(-5, 35), (-60, 40), (100, 100)]
    key = Organization(service, made["id"]).live
    today = str(datetime.now(UTC).date())
    total = success(key.get("/v1/statement", **{"from": today, "to": today}))["total"]
    assert (total["refilled"], total["closing_balance"]) == (35, 35)
    done = success(ours.get("/v1/platform/actions", organization=made["id"]))["actions"]
    assert [one["detail"] for one in done if one["action"] == "balance.refilled" and not one["sandbox"]] == [
        *("-5", "-60", "100")
    ]
    events: list[Any] = []

    def are_told() -> bool:
        events[:] = success(key.get("/v1/events", types="balance.*"))["events"]
        return len(events) == 4

    until(are_told, every_s=0.1)
    assert [(one["type"], one["data"].get("amount")) for one in events] == [
        *(("balance.refilled", 100), ("balance.refilled", -60), ("balance.low", None), ("balance.refilled", -5)),
    ]
    service.command("audit")


def test_an_external_id_is_one_organizations_and_makes_it_once(service: Service, ours: Platform) -> None:
    name, other = address(), address()
    with ThreadPoolExecutor(4) as pool:
        body = {"name": " Acme ", "external_id": name, "balance": 7}
        answers = list(pool.map(lambda _: ours.call("POST", _ORGANIZATIONS, json=body), range(4)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [201]
    made = success(answers[0], answers[0].status_code)
    assert [answer.json()["data"] for answer in answers] == [made] * 4
    assert (made["external_id"], made["balance"]) == (name, 7)
    assert ["Location" in answer.headers for answer in answers] == [answer.status_code == 201 for answer in answers]
    refusal(ours.call("POST", _ORGANIZATIONS, json={"name": "Globex", "external_id": name}), 409, "external_id")
    assert success(ours.get(_ORGANIZATIONS, external_id=name)) == {"organizations": [made], "next_cursor": None}
    assert success(ours.get(_ORGANIZATIONS, external_id=other))["organizations"] == []
    refusal(ours.get(_ORGANIZATIONS, external_id="a b"), 400, "external_id")

    second = service.json("organizations", "create", "Globex", "--external-id", other)
    assert second["external_id"] == other
    assert "Nothing was made" in service.command("organizations", "create", "Globex", "--external-id", other).stdout
    assert "external_id" in service.command("organizations", "create", "X", "--external-id", other, status=1).stderr
    service.command("organizations", "create", "X", "--external-id", "a b", status=2)
    answer = _change(ours, second["id"], external_id=name)
    refusal(answer, 409, "external_id")
    assert answer.json()["additional_data"]["code"] == "organization_conflict"
    assert success(_change(ours, second["id"], external_id=None))["external_id"] is None
    assert success(_change(ours, made["id"], external_id=other)) == made | {"external_id": other}


def test_members_are_made_listed_given_links_and_removed_in_each_organization_alone(
    service: Service, ours: Platform
) -> None:
    made, elsewhere, email = _make(ours), _make(ours), address()
    path, their_path = (f"{_ORGANIZATIONS}/{each['id']}/members" for each in (made, elsewhere))
    body = {"email": f" {email} ", "first_name": "Mary", "last_name": "Jackson", "role": "admin"}
    member = success(ours.call("POST", path, json=body, headers={"Host": "evil.example.com"}), 201)
    assert member | {"id": 0, "link": ""} == body | {"email": email, "id": 0, "link": ""}
    assert member["link"].startswith(f"{service.url}/console/link/")
    page = httpx.get(member["link"], trust_env=False, timeout=60)
    assert page.status_code == 200
    assert "password" in page.text
    answer = ours.call("POST", path, json=body | {"email": email.upper()})
    refusal(answer, 409, "email")
    assert answer.json()["additional_data"]["code"] == "member_conflict"
    # The same person may be a member elsewhere, and nothing tells either organization of the other.
    theirs = success(ours.call("POST", their_path, json=body), 201)
    second = success(ours.call("POST", path, json=body | {"email": address()}), 201)

    first_page = success(ours.get(path, limit=1))
    last_page = success(ours.get(path, limit=1, cursor=first_page["next_cursor"]))
    assert [one["id"] for one in first_page["members"] + last_page["members"]] == [second["id"], member["id"]]
    [listed] = last_page["members"]
    assert listed in service.json("members", "list", str(made["id"]))
    assert listed | member == listed | {"link": member["link"]}
    assert (listed["organization_id"], listed["has_password"], listed["is_locked"]) == (made["id"], False, False)

    linked = success(ours.call("POST", f"{path}/{member['id']}/link"), 201)
    assert linked | {"link": ""} == member | {"link": ""}
    for link, status in ((member["link"], 404), (linked["link"], 200)):
        assert httpx.get(link, trust_env=False, timeout=60).status_code == status
    for _ in range(2):
        assert ours.call("DELETE", f"{path}/{member['id']}").status_code == 204
    assert [one["id"] for one in success(ours.get(path))["members"]] == [second["id"]]
    assert httpx.get(linked["link"], trust_env=False, timeout=60).status_code == 404
    for method, more in (("DELETE", ""), ("POST", "/link")):
        for member_id in (theirs["id"], "999999999", "9" * 400):
            refusal(ours.call(method, f"{path}/{member_id}{more}"), 404, "member")
    refusal(ours.call("POST", f"{path}/{member['id']}/link"), 404, "member")
    for method, sent in (("GET", {}), ("POST", {"json": body})):
        refusal(ours.call(method, f"{_ORGANIZATIONS}/999999999/members", **sent), 404, "organization")
    [action] = success(ours.get("/v1/platform/actions", organization=made["id"], limit=1))["actions"]
    assert (action["action"], action["subject_id"], action["by"]["id"]) == ("member.removed", member["id"], ours.id)
