"""What did my key do: every call of an organization's keys is listed, as it was answered, and nothing else of it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.calls import Key, Organization, address, organization, refusal, success
from tests.deadline import until
from tests.service.up import Service


@pytest.fixture(scope="module")
def made(service: Service) -> Organization:
    return organization(service, 100, sandbox_balance=50)


def _listed(key: Key, **query: Any) -> list[dict[str, Any]]:
    """Return the calls that match, of which none was made by this look."""
    return [row for row in key.listed("requests", **query) if row["route"] != "/v1/requests"]


def _found(key: Key, how_many: int, **query: Any) -> list[dict[str, Any]]:
    """Return the calls that match, once there are so many: they are listed a moment after their answers."""
    rows: list[dict[str, Any]] = []

    def are_there() -> bool:
        rows[:] = _listed(key, **query)
        return len(rows) >= how_many

    until(are_there, f"{how_many} calls are listed", every_s=0.1)
    assert len(rows) == how_many
    return rows


def test_every_call_of_a_key_is_listed_as_it_was_answered_and_found_by_what_is_known_of_it(service: Service) -> None:
    made = organization(service, 100)
    key, began = made.live, datetime.now(UTC)
    sent = key.send({"recipients": [address(), address()], "amount": 10})
    batch_id = sent.json()["additional_data"]["batch_id"]
    later = (began + timedelta(days=1)).isoformat()
    waits = key.send({"recipient": address(), "amount": 1, "send_at": later}).json()["additional_data"]["batch_id"]
    answers = [
        (sent, "POST", "/v1/points/send", None, batch_id),
        (key.send({"recipient": "nobody", "amount": 10}), "POST", "/v1/points/send", None, None),
        (
            key.verify({"recipient": address(), "amount": 500}),
            *("POST", "/v1/points/verify", "insufficient_balance", None),
        ),
        (key.get(f"/v1/batches/{batch_id}"), "GET", "/v1/batches/{id}", None, batch_id),
        (
            key.call("POST", f"/v1/batches/{batch_id}/cancel"),
            *("POST", "/v1/batches/{id}/cancel", "batch_final", batch_id),
        ),
        (key.get(f"/v1/batches/{'9' * 30}"), "GET", "/v1/batches/{id}", "not_found", None),
        (key.get(f"/v1/transactions?email={address()}"), "GET", "/v1/transactions", None, None),
        (key.get(f"/v1/{address()}"), "GET", None, "not_found", None),
        (key.call("PUT", "/v1/batches"), "PUT", None, "method_not_allowed", None),
        (key.call("POST", "/v1/points/send", content=b"x"), "POST", "/v1/points/send", "unsupported_media_type", None),
        (
            key.call("POST", "/v1/sandbox/reset"),
            *("POST", "/v1/sandbox/reset", "development_key_required", None),
        ),
    ]
    rows = _found(key, len(answers) + 1)
    told = {answer.headers["X-Request-Id"]: (answer.status_code, *more) for answer, *more in answers}
    [move] = [row for row in rows if row["batch_id"] == waits]
    assert move["status"] == 202
    assert {
        row["request_id"]: (row["status"], row["method"], row["route"], row["code"], row["batch_id"])
        for row in rows
        if row is not move
    } == told
    assert [row["created_at"] for row in rows] == sorted((row["created_at"] for row in rows), reverse=True)
    assert len({row["api_key_id"] for row in rows}) == 1
    assert all(row["ms"] >= 0 for row in rows)
    for row in rows:
        assert abs(datetime.fromisoformat(row["created_at"]) - began) < timedelta(hours=1)
    # Neither an address nor a key is anywhere in it.
    assert not any(word in json.dumps(rows) for word in ("@", "example.com", key.text))

    one = sent.headers["X-Request-Id"]
    assert [row["request_id"] for row in _listed(key, request_id=one)] == [one]
    assert {row["route"] for row in _listed(key, batch=batch_id)} == {
        *("/v1/points/send", "/v1/batches/{id}", "/v1/batches/{id}/cancel")
    }
    assert {row["status"] for row in _listed(key, status="4xx")} == {400, 403, 404, 405, 409, 415}
    assert [row["code"] for row in _listed(key, status="409")] == ["batch_final"]
    assert len(_listed(key, api_key=rows[0]["api_key_id"])) == len(rows)
    assert _listed(key, api_key=rows[0]["api_key_id"] + 1) == []
    middle = rows[4]["created_at"]
    assert _listed(key, created_from=middle) == rows[:5]
    assert _listed(key, created_to=middle) == rows[4:]
    assert [row for page in key.pages("requests", limit=2, created_to=rows[0]["created_at"]) for row in page] == rows


def test_a_mode_lists_its_own_calls_and_those_of_a_key_that_was_revoked_since(service: Service) -> None:
    made = organization(service, 0)
    live, development, lost = made.live, made.development, made.new_key()
    success(development.get("/v1/organization"))
    success(lost.get("/v1/events", wait=1))
    [row] = _found(live, 1)
    assert row["route"] == "/v1/events"
    assert [one["route"] for one in _found(development, 1)] == ["/v1/organization"]
    until(lambda: any(one["route"] == "/v1/requests" for one in live.listed("requests")), every_s=0.1)
    service.command("keys", "revoke", str(row["api_key_id"]))
    refusal(lost.get("/v1/organization"), 401, "authorization")
    [refused] = _found(live, 1, status="401")
    assert (refused["api_key_id"], refused["code"]) == (row["api_key_id"], "invalid_key")


def test_an_id_with_an_address_in_it_is_listed_without_the_address_and_found_by_it(made: Organization) -> None:
    name = address()
    success(made.development.call("GET", "/v1/organization", headers={"X-Request-Id": f"run-7:{name}"}))
    [row] = _found(made.development, 1, request_id=f"run-7:{name}")
    assert name not in json.dumps(row)
    assert _listed(made.development, request_id=row["request_id"]) == [row]
