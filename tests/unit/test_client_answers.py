"""What a call may raise: for whatever is answered and whatever is sent, one of ours, that says what to change."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import points_client
from points_client import NoAnswer, Points, PointsError, Webhook
from points_client.testing import KEY, URL, FakePoints
from tests.client_halves import HALVES, points_of

MOMENT = "2026-01-31T09:30:00.000000Z"
ACME = {"id": 1, "name": "Acme", "is_disabled": False, "is_suspended": False, "balance": 9, "created_at": MOMENT}
FLAGS = {"debited": True, "credited": False, "allocated": False, "sandbox": True}
PAID = {"id": 1, "organization": ACME, "email": "ann@example.com", "amount": 1, "created_at": MOMENT, **FLAGS}
ISSUED = {"transactions": [PAID], "amount": 1, "current_balance": 9}
BODY: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}


def envelope(data: object = ISSUED, **changed: object) -> dict[str, Any]:
    additional = {"version": "1.0", "batch_id": 7}
    return {"success": True, "data": data, "errors": None, "additional_data": additional} | changed


def answered(half: str, status: int, content: bytes, call: Callable[[Points], object]) -> PointsError:
    """Return what a call raises that gets this answer."""
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=content))
    with points_of(half, KEY, URL, transport=transport, patience_s=0) as points, pytest.raises(PointsError) as error:
        call(points)
    return error.value


ODD: dict[str, Any] = {
    "an array": [],
    "null": None,
    "success in words": envelope(success="true"),
    "data null": envelope(None),
    "additional_data a string": envelope(additional_data="x"),
    "no batch_id": envelope(additional_data={}),
    "batch_id true": envelope(additional_data={"batch_id": True}),
    "transactions missing": envelope({"amount": 1, "current_balance": 9}),
    "transactions an object": envelope(ISSUED | {"transactions": {"0": PAID}}),
    "no transaction": envelope(ISSUED | {"transactions": []}),
    "a transaction too many": envelope(ISSUED | {"transactions": [PAID, PAID]}),
    "a transaction null": envelope(ISSUED | {"transactions": [None]}),
    "an amount in words": envelope(ISSUED | {"transactions": [PAID | {"amount": "1"}]}),
    "an amount with a fraction": envelope(ISSUED | {"transactions": [PAID | {"amount": 1.0}]}),
    "a flag that is none": envelope(ISSUED | {"transactions": [PAID | {"debited": 1}]}),
    "a moment that is none": envelope(ISSUED | {"transactions": [PAID | {"created_at": "yesterday"}]}),
    "a moment that is a number": envelope(ISSUED | {"transactions": [PAID | {"created_at": 17}]}),
    "no organization": envelope(ISSUED | {"transactions": [PAID | {"organization": None}]}),
    "a status that is none": envelope(ISSUED | {"status": 5}),
}
FOREIGN = (400, 401, 403, 404, 405, 409, 413, 415, 418, 422, 451, 501, 505, 520)
NO_JSON: dict[str, bytes] = {
    "HTML": b"<html>Welcome</html>",
    "nothing": b"",
    "no UTF-8": b"\xff\xfe",
    "nested without end": b"[" * 100_000,
    "nested in data": b'{"success": true, "data": ' + b"[" * 100_000,
    "digits without end": b'{"success": true, "data": ' + b"9" * 10_000 + b"}",
    "NaN": b'{"success": true, "data": NaN}',
}
REFUSALS: dict[str, Any] = {
    "errors a number": {"errors": {"code": 500}},
    "errors an array": {"errors": ["x"]},
    "errors empty": {"errors": {}},
    "errors a string": {"errors": "x"},
    "a sentence alone": {"errors": {"amount": "No."}},
    "a sentence null": {"errors": {"amount": [None]}},
    "RFC 9457": {"type": "about:blank", "title": "Forbidden", "status": 403},
    "detail": {"detail": "Not Found"},
}


ODD_CONTENTS, REFUSAL_CONTENTS = (
    {name: json.dumps(one).encode() for name, one in of.items()} for of in (ODD, REFUSALS)
)
CASES = {
    **{f"{name}, a success": ((200, 201, 202), content) for name, content in {**ODD_CONTENTS, **NO_JSON}.items()},
    **{f"{name}, none": (FOREIGN, content) for name, content in {**REFUSAL_CONTENTS, **NO_JSON}.items()},
}


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize(("statuses", "content"), CASES.values(), ids=list(CASES))
def test_an_answer_of_something_else_is_no_answer_and_carries_the_key(
    statuses: tuple[int, ...], content: bytes, half: str
) -> None:
    answers = iter(statuses)
    transport = httpx.MockTransport(lambda _: httpx.Response(next(answers), content=content))
    with points_of(half, KEY, URL, transport=transport, patience_s=0) as points:
        for _ in statuses:
            with pytest.raises(NoAnswer) as none:
                points.send(**BODY, idempotency_key="mine", wait_s=0.1)
            assert (type(none.value), none.value.key) == (NoAnswer, "mine")
        assert next(answers, None) is None, "each is tried once"
        answers = iter(statuses)
        reads: tuple[Callable[[Points], object], ...] = (
            lambda points: points.organization(),
            lambda points: list(points.transactions.list()),
            lambda points: points.events.page(),
        )
        for read in reads:
            with pytest.raises(PointsError):
                read(points)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("changed", [{"email": "other@example.com"}, {"reference": "r-2"}, {"amount": 3}], ids=str)
def test_an_answer_about_something_else_than_what_was_sent_is_not_believed(changed: dict[str, Any], half: str) -> None:
    fake = FakePoints()

    def swapped(request: httpx.Request) -> httpx.Response:
        document = fake.handle_request(request).json()
        document["data"]["transactions"][1] |= changed
        return httpx.Response(201, json=document)

    items = [{"email": "ann@example.com"}, {"email": "bob@example.com", "reference": "r-1"}]
    transport = httpx.MockTransport(swapped)
    with points_of(half, KEY, URL, transport=transport) as points, pytest.raises(NoAnswer) as none:
        points.send(items=items, amount=2, idempotency_key="mine")
    assert none.value.key == "mine"


TAKEN = [{"id": 7, "email": "ann@example.com", "amount": 1, "reversed": 1, "code": None}]
BATCH = {"batch_id": 7, "status": "issued", "final": True, "created_at": MOMENT}
OTHERS: dict[str, tuple[Callable[[Points], object], dict[str, Any], str]] = {
    "other transactions": (
        lambda points: points.reverse(transactions=[8], reason="x"),
        {"reversal_id": 1, "transactions": TAKEN, "amount": 1, "current_balance": 1},
        "other transactions than those sent",
    ),
    "other days": (
        lambda points: points.statement(from_="2026-01-01", to="2026-01-31"),
        {"from": "2026-01-01", "to": "2026-01-02", "days": [], "total": {}},
        "its to is another",
    ),
    "another batch": (lambda points: points.batches.get(8), BATCH, "its batch_id is another"),
    "events before": (
        lambda points: points.events.page(after=5),
        {"events": [], "last_sequence": 4},
        "its events are not those asked for",
    ),
}


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", OTHERS)
def test_an_answer_about_something_else_than_what_was_asked_is_not_believed(name: str, half: str) -> None:
    call, data, words = OTHERS[name]
    error = answered(half, 200, json.dumps(envelope(data, additional_data={})).encode(), call)
    assert words in str(error)


def test_a_secret_is_not_shown() -> None:
    assert "whsec" not in repr(Webhook(id=1, url="https://x.example", status="enabled", secret="whsec_x"))


def test_a_call_tells_the_version_of_the_client() -> None:
    told: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        told.append(request.headers["User-Agent"])
        return httpx.Response(404, json={})

    with Points(KEY, URL, transport=httpx.MockTransport(answer)) as points, pytest.raises(PointsError):
        points.organization()
    assert told == [f"points-client/{points_client.__version__}"]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("labels", [("spring", None), ("spring",), ("spring", "autumn"), ()], ids=str)
def test_rows_that_differ_in_what_they_have_are_read_each_for_itself(labels: tuple[str | None, ...], half: str) -> None:
    ann = {"id": 3, "email": "ann@example.com", "first_name": "Ann", "last_name": "Lee", "created_at": MOMENT}
    more: tuple[dict[str, Any], ...] = ({"recipient": ann}, {"recipient": None, "created_at": "2026-02-01T09:30:00Z"})
    rows = [PAID | {"id": number} | one for number, one in enumerate(more)]
    for row, label in zip(rows, labels, strict=False):
        row["label"] = label
    content = json.dumps(envelope(ISSUED | {"transactions": rows})).encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(201, content=content))
    with points_of(half, KEY, URL, transport=transport, patience_s=0) as points:
        first, second = points.send(recipients=["ann@example.com"] * 2, amount=1).transactions
    assert (first.label, second.label) == (*labels, None, None)[:2]
    assert (first.id, second.id, first.recipient and first.recipient.id, second.recipient) == (
        0,
        1,
        3,
        None,
    )
    assert (first.created_at.month, second.created_at.month) == (1, 2)
