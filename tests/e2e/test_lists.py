"""The lists and the sandbox's reset over HTTP, as a caller follows them page by page."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Organization, Service

ANN, BOB = "ann@lists.example.com", "Bob@lists.example.com"


@pytest.fixture(scope="module")
def caller(service: Service) -> Organization:
    """Make an organization that has issued: to two, to one more than it could pay, and in the sandbox."""
    service.register(ANN)
    organization = service.organization(100, sandbox_balance=50)
    for key, recipients, amount in (
        (organization.live, [ANN, BOB], 10),
        (organization.live, [BOB], 30),
        (organization.live, [ANN, BOB, "cem@lists.example.com"], 25),
        (organization.development, [BOB], 5),
    ):
        assert service.send(key, {"recipients": recipients, "amount": amount}).status_code == 201
    return organization


def listed(service: Service, key: str, name: str, **query: Any) -> list[dict[str, Any]]:
    """Return all rows of a list, page by page as its cursors lead."""
    rows: list[dict[str, Any]] = []
    for data in pages(service, key, name, **query):
        rows += data[name]
    return rows


def pages(service: Service, key: str, name: str, **query: Any) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        asked = query if cursor is None else {**query, "cursor": cursor}
        answer = service.call("GET", f"/v1/{name}", key=key, params=asked)
        assert answer.status_code == 200, answer.text
        data = answer.json()["data"]
        assert list(data) == [name, "next_cursor"]
        yield data
        cursor = data["next_cursor"]
        if cursor is None:
            return


def _refused(answer: httpx.Response, status: int, *fields: str) -> None:
    assert answer.status_code == status, answer.text
    assert sorted(answer.json()["errors"]) == sorted(fields)


@pytest.mark.parametrize("limit", [1, 2, 1_000])
def test_every_transaction_is_listed_once_newest_first_as_its_batch_shows_it(
    service: Service, caller: Organization, limit: int
) -> None:
    rows = listed(service, caller.live, "transactions", limit=limit)
    batches = listed(service, caller.live, "batches", limit=limit)
    shown = []
    for batch in batches:
        whole = service.call("GET", f"/v1/batches/{batch['batch_id']}", key=caller.live).json()["data"]
        assert batch == {name: value for name, value in whole.items() if name != "transactions"}
        shown += reversed(whole["transactions"])
    assert rows == shown
    assert [row["organization"]["balance"] for row in rows] == [0, 0, 25, 50, 80, 90]
    assert [(row["debited"], row["credited"]) for row in rows[:3]] == [(False, False), (True, False), (True, True)]
    for row in rows:
        assert service.call("GET", f"/v1/transactions/{row['id']}", key=caller.live).json()["data"] == row


def test_a_page_holds_a_hundred_rows_unless_another_limit_is_asked_for(service: Service) -> None:
    organization = service.organization(1_000)
    recipients = [f"r{number}@lists.example.com" for number in range(101)]
    assert service.send(organization.live, {"recipients": recipients, "amount": 1}).status_code == 201
    sizes = [len(data["transactions"]) for data in pages(service, organization.live, "transactions")]
    assert sizes == [100, 1]


@pytest.mark.parametrize(
    ("query", "transactions", "batches"),
    [
        ({"email": "BOB@lists.example.com"}, 3, 3),
        ({"email": "nobody@lists.example.com"}, 0, 0),
        ({"debited": "true"}, 5, 3),
        ({"debited": "false"}, 1, 1),
        ({"credited": "true"}, 2, 2),
        ({"allocated": "false"}, 4, 3),
        ({"debited": "true", "credited": "false"}, 3, 3),
        ({"debited": "false", "credited": "true"}, 0, 0),
        ({"email": ANN, "allocated": "true"}, 2, 2),
        ({"created_from": "2020-01-01T00:00:00Z"}, 6, 3),
        ({"created_to": "2020-01-01T00:00:00%2B02:00".replace("%2B", "+")}, 0, 0),
    ],
)
def test_filters_let_through_what_they_say(
    service: Service, caller: Organization, query: dict[str, str], transactions: int, batches: int
) -> None:
    assert len(listed(service, caller.live, "transactions", limit=2, **query)) == transactions
    assert len(listed(service, caller.live, "batches", limit=2, **query)) == batches


def test_a_batch_and_a_time_of_one_row_find_that_row(service: Service, caller: Organization) -> None:
    first = listed(service, caller.live, "batches")[-1]
    rows = listed(service, caller.live, "transactions", batch=first["batch_id"])
    assert [row["email"] for row in rows] == [BOB, ANN]
    assert listed(service, caller.live, "batches", batch=first["batch_id"]) == [first]
    moment = first["issued_at"]
    assert listed(service, caller.live, "transactions", created_from=moment, created_to=moment) == rows
    moment = first["created_at"]
    assert listed(service, caller.live, "batches", created_from=moment, created_to=moment) == [first]


def test_another_organization_and_the_other_mode_see_none_of_it(service: Service, caller: Organization) -> None:
    stranger = service.organization(10)
    live = listed(service, caller.live, "transactions")
    batch_id = listed(service, caller.live, "batches")[0]["batch_id"]
    for key in (stranger.live, stranger.development, caller.development):
        for row in live:
            _refused(service.call("GET", f"/v1/transactions/{row['id']}", key=key), 404, "transaction")
        assert listed(service, key, "transactions", batch=batch_id) == []
        assert listed(service, key, "batches", batch=batch_id) == []
    [sandboxed] = listed(service, caller.development, "transactions")
    assert (sandboxed["sandbox"], sandboxed["organization"]["balance"]) == (True, 45)
    assert len(listed(service, caller.development, "batches")) == 1
    assert listed(service, stranger.live, "transactions") == listed(service, stranger.live, "batches") == []


def test_a_cursor_serves_its_own_list_filters_organization_and_mode_alone(
    service: Service, caller: Organization
) -> None:
    stranger = service.organization(10)
    cursor = next(pages(service, caller.live, "transactions", limit=1))["next_cursor"]
    assert isinstance(cursor, str)
    _refused(service.call("GET", f"/v1/batches?cursor={cursor}", key=caller.live), 400, "cursor")
    _refused(service.call("GET", f"/v1/transactions?debited=true&cursor={cursor}", key=caller.live), 400, "cursor")
    for key in (stranger.live, caller.development):
        _refused(service.call("GET", f"/v1/transactions?cursor={cursor}", key=key), 400, "cursor")
    for broken in (cursor[:-1], cursor + "A", cursor.swapcase()):
        _refused(service.call("GET", f"/v1/transactions?cursor={broken}", key=caller.live), 400, "cursor")
    assert service.call("GET", f"/v1/transactions?limit=3&cursor={cursor}", key=caller.live).status_code == 200


def test_held_points_are_listed_as_credited_once_they_are_claimed(service: Service) -> None:
    organization, email = service.organization(10), "dan@lists.example.com"
    service.send(organization.live, {"recipient": email, "amount": 10})
    [held] = listed(service, organization.live, "transactions", credited="false")
    service.register(email)
    [claimed] = listed(service, organization.live, "transactions", credited="true")
    assert (held["id"], held["recipient"], held["allocated"]) == (claimed["id"], None, False)
    assert claimed["recipient"]["first_name"] == "First"
    assert listed(service, organization.live, "transactions", credited="false") == []


def test_a_reset_puts_the_sandbox_back_and_leaves_the_live_balance_alone(service: Service) -> None:
    organization = service.organization(10, sandbox_balance=50)
    service.send(organization.development, {"recipient": ANN, "amount": 20})
    before = service.call("GET", "/v1/organization", key=organization.live).json()
    answer = service.call("POST", "/v1/sandbox/reset", key=organization.development)
    assert answer.status_code == 200
    assert answer.json() == service.call("GET", "/v1/organization", key=organization.development).json()
    assert (answer.json()["data"]["balance"], answer.json()["data"]["last_refill"]) == (50, 50)
    assert service.call("GET", "/v1/organization", key=organization.live).json() == before
    assert len(listed(service, organization.development, "transactions")) == 1


def test_a_live_key_resets_nothing(service: Service) -> None:
    organization = service.organization(10, sandbox_balance=50)
    service.send(organization.development, {"recipient": ANN, "amount": 20})
    _refused(service.call("POST", "/v1/sandbox/reset", key=organization.live), 403, "authorization")
    _refused(service.call("POST", "/v1/sandbox/reset"), 401, "authorization")
    assert service.balance(organization.development) == 30


def test_a_suspended_organization_can_read_and_reset(service: Service) -> None:
    organization = service.organization(10, sandbox_balance=50)
    service.send(organization.development, {"recipient": ANN, "amount": 20})
    service.points("organizations", "suspend", str(organization.id))
    answer = service.call("POST", "/v1/sandbox/reset", key=organization.development)
    assert (answer.status_code, answer.json()["data"]["balance"]) == (200, 50)
    assert answer.json()["data"]["is_suspended"] is True
    assert len(listed(service, organization.development, "transactions")) == 1
