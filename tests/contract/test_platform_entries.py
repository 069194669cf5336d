"""A user's entries: what made the balance, newest first; they add up to it while points move."""

import pytest

from tests.contract.calls import TIMESTAMP, Organization, address, refusal, success
from tests.contract.platform import Platform, platform
from tests.contract.reversing import send, taken
from tests.service.up import Service

_ENTRY = {"type", "amount", "transaction_id", "reversal_id", "organization", "label", "reference", "created_at"}


@pytest.fixture(scope="module")
def ours(service: Service) -> Platform:
    return platform(service)


def test_the_entries_are_the_credits_and_what_was_taken_back_newest_first(
    service: Service, acme: Organization, globex: Organization, ours: Platform
) -> None:
    email, later = address(), address()
    _, [held] = send(globex.live, {"items": [{"email": email.upper(), "amount": 40, "reference": "r-1"}], "label": "A"})
    of_held = taken(globex.live, {"transactions": [held], "amount": 10})
    user = ours.registered(email)
    assert user["balance"] == 30
    _, [paid, _] = send(acme.live, {"recipients": [email, address()], "amount": 100})
    send(acme.development, {"recipient": email, "amount": 7})
    first = taken(acme.live, {"transactions": [paid], "amount": 25})
    batch_id, [at_later] = send(acme.live, {"items": [{"email": later, "amount": 5, "label": "own"}], "label": "B"})
    success(ours.change(user["id"], email=later))
    second = taken(acme.live, {"transactions": [paid]})
    third = taken(acme.live, {"batch": batch_id, "amount": 1})
    _, [last] = send(globex.live, {"recipient": later, "amount": 2})
    told = ours.entries(user["id"])
    assert [(one["type"], one["amount"], one["transaction_id"], one["reversal_id"]) for one in told] == [
        ("credit", 2, last, None),
        ("reversal", -1, at_later, third["reversal_id"]),
        ("reversal", -75, paid, second["reversal_id"]),
        ("credit", 5, at_later, None),
        ("reversal", -25, paid, first["reversal_id"]),
        ("credit", 100, paid, None),
        ("credit", 30, held, None),  # What was taken back while it was held was never theirs.
    ]
    assert of_held["amount"] == 10
    assert all(set(one) == _ENTRY and TIMESTAMP.match(one["created_at"]) for one in told)
    assert [one["created_at"] for one in told] == sorted((one["created_at"] for one in told), reverse=True)
    named = [(one["label"], one["reference"]) for one in told]
    assert named == [(None, None), ("own", None), (None, None), ("own", None), (None, None), (None, None), ("A", "r-1")]
    assert told[0]["organization"] == {"id": globex.id, "name": "Acme"}
    assert {one["organization"]["id"] for one in told} == {acme.id, globex.id}
    assert sum(one["amount"] for one in told) == ours.user(user["id"])["balance"] == 36
    # The time of a credit is that of the issue, or of the claim.
    assert told[5]["created_at"] == success(acme.live.get(f"/v1/transactions/{paid}"))["created_at"]
    assert told[6]["created_at"] > success(globex.live.get(f"/v1/transactions/{held}"))["created_at"]
    for limit in (1, 2, 7):
        assert ours.entries(user["id"], limit=limit) == told
    assert service.json("users", "entries", str(user["id"])) == told
    assert service.json("users", "entries", str(user["id"]), "--limit", "2") == told[:2]
    assert service.command("users", "entries", "999999999", status=1).stderr == "points: There is no user 999999999.\n"


def test_a_query_has_its_faults_named_and_no_user_is_not_found(ours: Platform) -> None:
    user, other = ours.registered(address()), ours.registered(address())
    path = f"/v1/platform/users/{user['id']}/entries"
    assert success(ours.get(path)) == {"entries": [], "next_cursor": None}
    for query, field in (
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"cursor": ""}, "cursor"),
        ({"cursor": "A" * 38}, "cursor"),
        ({"user": str(other["id"])}, "user"),
        ({"created_from": "2026-01-01T00:00:00Z"}, "created_from"),
    ):
        refusal(ours.get(path, **query), 400, field)
    for number in ("0", "999999999", str(2**63), "9" * 400):
        refusal(ours.get(f"/v1/platform/users/{number}/entries"), 404, "user")
