"""The lists: every row once, newest first, page by page, filtered, and each row as it is read alone."""

from typing import Any

import httpx
import pytest

from tests.contract.calls import Key, Organization, address, organization, refusal, success
from tests.deadline import until
from tests.service.up import Service


class Books:
    """An organization that has issued in both modes: live to two, to one, and to one more than it could pay."""

    def __init__(self, service: Service) -> None:
        self.ann, self.bob, cem = address(), address().replace("@", ".Bob@"), address()
        service.register(self.ann)
        made = organization(service, 100, sandbox_balance=50)
        self.live, self.development = made.live, made.development
        for key, recipients, amount in (
            (self.live, [self.ann, self.bob], 10),
            (self.live, [self.bob], 30),
            (self.live, [self.ann, self.bob, cem], 25),
            (self.development, [self.bob], 5),
        ):
            success(key.send({"recipients": recipients, "amount": amount}), 201)


@pytest.fixture(scope="module")
def books(service: Service) -> Books:
    return Books(service)


@pytest.mark.parametrize("limit", [1, 2, 3, 1_000])
def test_every_row_is_listed_once_newest_first_as_it_is_read_alone(books: Books, limit: int) -> None:
    rows = books.live.listed("transactions", limit=limit)
    batches = books.live.listed("batches", limit=limit)
    shown: list[dict[str, Any]] = []
    for batch in batches:
        whole = books.live.batch(batch["batch_id"])
        assert batch == {name: value for name, value in whole.items() if name != "transactions"}
        shown += reversed(whole["transactions"])
    assert rows == shown
    assert [row["organization"]["balance"] for row in rows] == [0, 0, 25, 50, 80, 90]
    assert [batch["amount"] for batch in batches] == [50, 30, 20]
    for row in rows:
        assert success(books.live.get(f"/v1/transactions/{row['id']}")) == row


@pytest.mark.parametrize(
    ("query", "transactions", "batches"),
    [
        ({"email": "bob"}, 3, 3),
        ({"email": "nobody"}, 0, 0),
        ({"debited": "true"}, 5, 3),
        ({"debited": "false"}, 1, 1),
        ({"credited": "true"}, 2, 2),
        ({"credited": "false"}, 4, 3),
        ({"allocated": "false"}, 4, 3),
        ({"debited": "true", "credited": "false"}, 3, 3),
        ({"debited": "false", "credited": "true"}, 0, 0),
        ({"email": "ann", "allocated": "true"}, 2, 2),
        ({"created_from": "2020-01-01T00:00:00Z"}, 6, 3),
        ({"created_from": "2120-01-01T00:00:00.000001Z"}, 0, 0),
        ({"created_to": "2020-01-01T00:00:00+02:00"}, 0, 0),
    ],
)
def test_filters_let_through_what_they_say(
    books: Books, query: dict[str, str], transactions: int, batches: int
) -> None:
    named = {"bob": books.bob.upper(), "ann": f" {books.ann} ", "nobody": address()}
    query = {name: named.get(value, value) for name, value in query.items()}
    for limit in (1, 100):
        assert len(books.live.listed("transactions", limit=limit, **query)) == transactions
        assert len(books.live.listed("batches", limit=limit, **query)) == batches


def test_a_batch_and_a_time_to_the_microsecond_find_just_their_rows(books: Books) -> None:
    live, batches = books.live, books.live.listed("batches")
    for batch in batches:
        rows = live.listed("transactions", batch=batch["batch_id"])
        [issued] = {row["created_at"] for row in rows}
        assert live.listed("transactions", created_from=issued, created_to=issued) == rows
        assert live.listed("batches", batch=batch["batch_id"]) == [batch]
        accepted = batch["created_at"]
        assert live.listed("batches", created_from=accepted, created_to=accepted) == [batch]
    # A bound of more digits than a time of ours has is kept all the same: what comes after the last row is nothing.
    last, first = batches[0]["created_at"], batches[-1]["created_at"]
    assert live.listed("batches", created_from=last[:-1] + "001Z") == []
    assert live.listed("batches", created_to=first[:-1] + "999Z") == batches[-1:]
    assert live.listed("batches", created_from=first) == batches
    assert live.listed("batches", created_to=first) == batches[-1:]


def test_a_page_holds_a_hundred_rows_unless_up_to_a_thousand_are_asked_for(acme: Organization) -> None:
    email = address()
    answer = acme.live.send({"recipients": [f"{n}.{email}" for n in range(1_101)], "amount": 1})
    newest_first = success(answer, 201)["transactions"][::-1]
    query = {"batch": answer.json()["additional_data"]["batch_id"]}
    for more, sizes in (({}, [100] * 11 + [1]), ({"limit": 1_000}, [1_000, 101])):
        pages = [page for page in acme.live.pages("transactions", **query, **more) if page]
        assert [len(page) for page in pages] == sizes
        assert [row for page in pages for row in page] == newest_first


def test_what_is_issued_meanwhile_makes_no_row_repeat_and_none_go_missing(acme: Organization) -> None:
    body = {"recipient": address(), "amount": 1}
    for _ in range(5):
        success(acme.live.send(body), 201)
    before = acme.live.listed("transactions", email=body["recipient"])
    seen: list[dict[str, Any]] = []
    for page in acme.live.pages("transactions", email=body["recipient"], limit=2):
        seen += page
        success(acme.live.send(body), 201)
    assert seen == before
    assert len(acme.live.listed("transactions", email=body["recipient"])) >= 8


@pytest.mark.parametrize("name", ["batches", "transactions"])
def test_a_misspelt_filter_is_not_ignored_and_names_the_nearest_known_one(acme: Organization, name: str) -> None:
    errors = refusal(acme.live.get(f"/v1/{name}", create_from="2120-01-01T00:00:00Z"), 400, "create_from")
    assert "did you mean created_from?" in errors["create_from"][0]
    refusal(acme.live.get(f"/v1/{name}?Limit=1&nonsense=&limit=0"), 400, "Limit", "nonsense", "limit")


@pytest.mark.parametrize("name", ["batches", "transactions", "reversals", "requests"])
def test_a_period_that_ends_before_it_begins_is_a_fault(acme: Organization, name: str) -> None:
    def between(first: str, last: str) -> httpx.Response:
        return acme.live.get(f"/v1/{name}", created_from=f"2026-01-31T{first}", created_to=f"2026-01-31T{last}")

    for first, last in (("09:30:01Z", "09:30:00Z"), ("00:00:00-12:00", "23:59:59+14:00")):
        refusal(between(first, last), 400, "created_from", "created_to")
    parted = "09:30:00.0000005Z"  # Both bounds are rounded to the inside.
    for first, last in (("09:30:00Z", "09:30:00Z"), ("09:30:00+01:00", "08:30Z"), (parted, parted)):
        success(between(first, last))
    for last in ("2026-02-01T00:00Z", "9999-12-31T23:59:59.999999Z"):
        success(acme.live.get(f"/v1/{name}", created_from="2026-01-31T00:00Z", created_to=last))


def test_a_cursor_serves_its_own_list_filters_organization_and_mode_alone(books: Books, acme: Organization) -> None:
    def refused(key: Key, name: str, **query: str) -> None:
        refusal(key.get(f"/v1/{name}", **query), 400, "cursor")

    cursor = success(books.live.get("/v1/transactions", limit=1))["next_cursor"]
    refused(books.live, "batches", cursor=cursor)
    refused(books.live, "transactions", cursor=cursor, debited="true")
    refused(acme.live, "transactions", cursor=cursor)
    refused(books.development, "transactions", cursor=cursor)
    for broken in (cursor[:-1], cursor + "A", cursor.swapcase(), cursor[1:]):
        refused(books.live, "transactions", cursor=broken)
    # The size of a page may change on the way.
    assert len(success(books.live.get("/v1/transactions", cursor=cursor, limit=3))["transactions"]) == 3


def test_a_batch_is_found_by_its_label_its_key_and_its_status(acme: Organization) -> None:
    live, label, key = acme.live, f"{address()} Jänner & co", address()
    success(live.send({"recipient": address(), "amount": 1, "label": label}), 201)
    batch_id = live.queue({"recipients": [address(), address()], "amount": 1, "label": label}, Idempotency_Key=key)
    until(lambda: live.is_issued(batch_id))
    [newest, first] = live.listed("batches", label=label)
    assert (newest["batch_id"], newest["label"], newest["idempotency_key"]) == (batch_id, label, key)
    assert (first["label"], first["idempotency_key"]) == (label, None)
    assert live.listed("batches", idempotency_key=key) == [newest]
    assert live.listed("batches", idempotency_key=key, label=label, status="issued") == [newest]
    assert live.listed("batches", idempotency_key=key, label="another") == []
    assert live.listed("batches", idempotency_key=key, status="queued") == []
    assert acme.development.listed("batches", idempotency_key=key) == []
    one_by_one = [batch for page in live.pages("batches", label=label, limit=1) for batch in page]
    assert one_by_one == [newest, first]
    for faulty in ({"label": ""}, {"label": "a" * 256}, {"status": "done"}, {"status": ""}, {"idempotency_key": "ä"}):
        refusal(live.get("/v1/batches", **faulty), 400, *faulty)
        refusal(live.get("/v1/transactions", **faulty), 400, *faulty)


def test_the_label_finds_a_batch_also_among_those_of_one_address(acme: Organization) -> None:
    email, label, key = address(), address(), address()
    success(acme.live.send({"recipient": email, "amount": 1, "label": label}, Idempotency_Key=key), 201)
    success(acme.live.send({"recipient": email, "amount": 1}), 201)
    for query in ({"label": label}, {"idempotency_key": key}, {"label": label, "status": "issued"}):
        assert [batch["label"] for batch in acme.live.listed("batches", email=email, **query)] == [label]


def test_a_batch_counts_its_transactions_as_they_are_now(books: Books) -> None:
    shown = [batch["counts"] for batch in books.live.listed("batches")]
    assert shown == [
        {"recipients": 3, "debited": 2, "credited": 1, "held": 1, "unpaid": 1, "reversed": 0},
        {"recipients": 1, "debited": 1, "credited": 0, "held": 1, "unpaid": 0, "reversed": 0},
        {"recipients": 2, "debited": 2, "credited": 1, "held": 1, "unpaid": 0, "reversed": 0},
    ]
    assert all(batch["final"] and batch["refusal"] is None for batch in books.live.listed("batches"))
