"""What a call may raise: for whatever is answered and whatever is sent, one of ours, that says what to change."""

import asyncio
import copy
import json
import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

import points_client
from points_client import (
    AsyncPoints,
    Invalid,
    Item,
    NoAnswer,
    NotAccepted,
    Points,
    PointsError,
    Webhook,
)
from points_client.testing import KEY, URL, FakePoints, NotInFake

MOMENT = "2026-01-31T09:30:00.000000Z"
ACME = {"id": 1, "name": "Acme", "is_disabled": False, "is_suspended": False, "balance": 9, "created_at": MOMENT}
FLAGS = {"debited": True, "credited": False, "allocated": False, "sandbox": True}
PAID = {"id": 1, "organization": ACME, "email": "ann@example.com", "amount": 1, "created_at": MOMENT, **FLAGS}
ISSUED = {"transactions": [PAID], "amount": 1, "current_balance": 9}
BODY: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}
Answer = Callable[[httpx.Response], Points]


def envelope(data: object = ISSUED, **changed: object) -> dict[str, Any]:
    additional = {"version": "1.0", "batch_id": 7}
    return {"success": True, "data": data, "errors": None, "additional_data": additional} | changed


@pytest.fixture
def answering() -> Iterator[Answer]:
    """Make a client whose calls all get this answer."""
    made: list[Points] = []

    def make(answer: httpx.Response) -> Points:
        made.append(Points(KEY, URL, transport=httpx.MockTransport(lambda _: answer), patience_s=0))
        return made[-1]

    yield make
    for points in made:
        points.close()


def test_an_answer_of_the_service_is_taken(answering: Answer) -> None:
    assert answering(httpx.Response(201, json=envelope())).send(**BODY).batch_id == 7


ODD: dict[str, Any] = {
    "an array": [],
    "a string": "x",
    "null": None,
    "success in words": envelope(success="true"),
    "no data": {"success": True},
    "data null": envelope(None),
    "data an array": envelope([ISSUED]),
    "additional_data a string": envelope(additional_data="x"),
    "additional_data an array": envelope(additional_data=[1]),
    "no batch_id": envelope(additional_data={}),
    "batch_id a string": envelope(additional_data={"batch_id": "7"}),
    "batch_id true": envelope(additional_data={"batch_id": True}),
    "transactions null": envelope(ISSUED | {"transactions": None}),
    "transactions missing": envelope({"amount": 1, "current_balance": 9}),
    "transactions a string": envelope(ISSUED | {"transactions": "x"}),
    "transactions an object": envelope(ISSUED | {"transactions": {"0": PAID}}),
    "no transaction": envelope(ISSUED | {"transactions": []}),
    "a transaction too many": envelope(ISSUED | {"transactions": [PAID, PAID]}),
    "a transaction null": envelope(ISSUED | {"transactions": [None]}),
    "another address": envelope(ISSUED | {"transactions": [PAID | {"email": "bob@example.com"}]}),
    "an address null": envelope(ISSUED | {"transactions": [PAID | {"email": None}]}),
    "another amount": envelope(ISSUED | {"transactions": [PAID | {"amount": 2}]}),
    "an amount in words": envelope(ISSUED | {"transactions": [PAID | {"amount": "1"}]}),
    "an amount with a fraction": envelope(ISSUED | {"transactions": [PAID | {"amount": 1.0}]}),
    "a flag that is none": envelope(ISSUED | {"transactions": [PAID | {"debited": 1}]}),
    "a moment that is none": envelope(ISSUED | {"transactions": [PAID | {"created_at": "yesterday"}]}),
    "a moment that is a number": envelope(ISSUED | {"transactions": [PAID | {"created_at": 17}]}),
    "no organization": envelope(ISSUED | {"transactions": [PAID | {"organization": None}]}),
    "a reference not sent": envelope(ISSUED | {"transactions": [PAID | {"reference": "r"}]}),
    "a status that is none": envelope(ISSUED | {"status": 5}),
}
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


@pytest.mark.parametrize("status", [200, 201, 202])
@pytest.mark.parametrize("content", [*map(json.dumps, ODD.values()), *NO_JSON.values()], ids=[*ODD, *NO_JSON])
def test_an_odd_success_is_no_answer_and_carries_the_key(answering: Answer, content: Any, status: int) -> None:
    points = answering(httpx.Response(status, content=content))
    with pytest.raises(NoAnswer) as none:
        points.send(**BODY, idempotency_key="mine", wait_s=0.1)
    assert (none.value.key, type(none.value)) == ("mine", NoAnswer)
    for call in (points.organization, lambda: list(points.transactions.list()), points.events.page):
        with pytest.raises(PointsError):
            call()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 418, 422, 451, 501, 505, 520])
@pytest.mark.parametrize("content", [*map(json.dumps, REFUSALS.values()), *NO_JSON.values()], ids=[*REFUSALS, *NO_JSON])
def test_a_page_of_somebody_else_is_no_answer_whatever_its_status(answering: Answer, content: Any, status: int) -> None:
    points = answering(httpx.Response(status, content=content, headers={"X-Request-Id": "r-1"}))
    with pytest.raises(NoAnswer) as none:
        points.send(**BODY, idempotency_key="mine")
    assert (none.value.key, type(none.value)) == ("mine", NoAnswer)
    for call in (points.organization, lambda: points.verify(**BODY), lambda: points.batches.get(1)):
        with pytest.raises(PointsError):
            call()


def test_no_answer_tells_what_was_answered_last(answering: Answer) -> None:
    document = {"errors": {"service": ["Away."]}, "additional_data": {"code": "out_of_reach"}}
    points = answering(httpx.Response(503, json=document, headers={"X-Request-Id": "r-1"}))
    with pytest.raises(NoAnswer) as none:
        points.send(**BODY, idempotency_key="mine", wait_s=0.1)
    error = none.value
    assert (error.status, error.code, error.request_id) == (503, "out_of_reach", "r-1")
    assert error.errors == {"service": ["Away."]}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (httpx.ConnectError("refused"), NotAccepted),
        (httpx.PoolTimeout("busy"), NotAccepted),
        (httpx.Response(429, json={"errors": {"rate_limit": ["Later."]}}), NotAccepted),
        (httpx.Response(429, text="<html>"), NoAnswer),
        (httpx.Response(503, json={"errors": {"service": ["Away."]}}), NoAnswer),
        (httpx.ReadError("reset"), NoAnswer),
        (httpx.WriteError("reset"), NoAnswer),
        (RuntimeError("a bug of a library"), NoAnswer),
        (KeyError("a bug of a library"), NoAnswer),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_was_surely_not_accepted_has_a_class_of_its_own(fault: Any, kind: type[NoAnswer]) -> None:
    fake = FakePoints()
    fake.faults.extend([fault] * 9)
    with Points(KEY, URL, transport=fake) as points, pytest.raises(NoAnswer) as none:
        points.send(**BODY, idempotency_key="mine", wait_s=0.1)
    assert (type(none.value), none.value.key) == (kind, "mine")


ERRORS = [one for one in vars(points_client).values() if isinstance(one, type) and issubclass(one, PointsError)]


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize(
    "pass_on",
    [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy],  # noqa: S301  # Our own.
    ids=["pickle", "copy", "deep"],
)
def test_every_error_goes_to_another_process_with_all_it_carries(
    kind: type[PointsError], pass_on: Callable[[PointsError], PointsError]
) -> None:
    carried: dict[str, Any] = {"status": 503, "errors": {"a": ["b"]}, "code": "c", "request_id": "d"}
    error = kind("What to do", **carried, location="e", key="mine")
    passed = pass_on(error)
    assert (type(passed), str(passed), vars(passed)) == (kind, "What to do", vars(error))


SURROGATE = "a\ud800b"
REFUSED_BEFORE: dict[str, tuple[Callable[[Points], object], str]] = {
    "umlaut": (lambda points: points.send(**BODY, idempotency_key="März-2026"), "idempotency_key"),
    "newline": (lambda points: points.send(**BODY, idempotency_key="run-1\n"), "idempotency_key"),
    "blanks": (lambda points: points.send(**BODY, idempotency_key=" ab "), "idempotency_key"),
    "empty": (lambda points: points.send(**BODY, idempotency_key=""), "idempotency_key"),
    "long": (lambda points: points.send(**BODY, idempotency_key="x" * 256), "idempotency_key"),
    "of a reverse": (lambda points: points.reverse(batch=1, reason="x", idempotency_key="ü"), "idempotency_key"),
    "address": (lambda points: points.send(recipients=["a@b.cc", SURROGATE], amount=1), r"recipients\.1"),
    "item": (lambda points: points.send(items=[Item(email=SURROGATE)], amount=1), r"items\.0\.email"),
    "label": (lambda points: points.verify(**BODY, label=SURROGATE), "label"),
    "metadata": (lambda points: points.send(**BODY, metadata={"k": SURROGATE}), r"metadata\.k"),
    "metadata's name": (lambda points: points.send(**BODY, metadata={SURROGATE: "v"}), "metadata"),
    "reason": (lambda points: points.reverse(batch=1, reason=SURROGATE), "reason"),
    "filter": (lambda points: list(points.transactions.list(email=SURROGATE)), "email"),
    "types": (lambda points: list(points.events.list(types=[SURROGATE])), "types"),
    "run": (lambda points: list(points.send_all([SURROGATE], run="r", amount=1)), r"items\.0\.email"),
    "bytes": (lambda points: points.send(recipients=[b"a@b.cc"], amount=1), r"recipients\.0 .*bytes"),  # type: ignore[list-item]
    "no number": (lambda points: points.send(recipients=["a@b.cc"], amount=float("nan")), "amount"),  # type: ignore[arg-type]
    "id": (lambda points: points.batches.get("1/../2"), "id"),  # type: ignore[arg-type]
    "id of truth": (lambda points: points.transactions.get(True), "id"),
    "wait": (lambda points: points.send(**BODY, wait_s=-1), "seconds"),
    "no wait": (lambda points: points.send(**BODY, wait_s=float("nan")), "seconds"),
    "moment": (lambda points: points.send(**BODY, send_at=SURROGATE), "send_at"),
}


@pytest.mark.parametrize(("call", "words"), REFUSED_BEFORE.values(), ids=list(REFUSED_BEFORE))
def test_what_cannot_be_sent_is_said_at_once_by_its_place(call: Callable[[Points], object], words: str) -> None:
    fake = FakePoints()
    fake.faults.append(httpx.Response(500))
    with Points(KEY, URL, transport=fake) as points, pytest.raises(ValueError, match=words):
        call(points)
    assert len(fake.faults) == 1, "nothing was sent"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("points.example.com", "http://"),
        ("ftp://x", "http://"),
        ("http://", "host"),
        ("http://[::1", "IPv6"),
        ("http://x:port", "port"),
        ("https://me:secret@x.example", "user"),
        ("https://x.example?key=secret", "query"),
        ("", "http://"),
    ],
)
def test_what_is_no_address_of_a_service_is_none(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        Points(KEY, url)
    assert "secret" not in str(error.value)


def test_a_client_is_made_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_KEY", KEY)
    monkeypatch.delenv("POINTS_URL", raising=False)
    with pytest.raises(ValueError, match="POINTS_URL is not set"):
        Points.from_env()
    monkeypatch.setenv("POINTS_URL", URL)
    with Points.from_env(transport=FakePoints(balance=5)) as points:
        assert (points.organization().balance, points.sandbox) == (5, True)


def test_a_secret_is_not_shown() -> None:
    assert "whsec" not in repr(Webhook(id=1, url="https://x.example", status="enabled", secret="whsec_x"))


def test_the_fake_has_a_statement_that_adds_up_also_after_a_reset() -> None:
    with Points(KEY, URL, transport=FakePoints(balance=100)) as points:
        points.send(recipients=["a@example.com", "b@example.com"], amount=60)
        today = datetime.now(UTC).date()
        points.rehearsing.set_clock(datetime.now(UTC) + timedelta(days=2))
        points.send(recipients=["a@example.com"], amount=30)
        found = points.statement(from_=today - timedelta(days=1), to=today + timedelta(days=1))
        assert (found.total.debited, found.total.unpaid, found.total.closing_balance) == (60, 1, 40)
        assert points.statement(from_=today, to=today + timedelta(days=2)).total.closing_balance == 10
        points.reset_sandbox()
        with pytest.raises(Invalid) as late:
            points.statement(from_=today, to=today + timedelta(days=2))
        assert set(late.value.errors) == {"to"}
        while True:
            today = datetime.now(UTC).date()
            total = points.statement(from_=today - timedelta(days=1), to=today).total
            if datetime.now(UTC).date() == today:
                break
    assert (total.refilled, total.debited, total.closing_balance, total.batches) == (190, 90, 100, 2)


def test_an_answer_about_other_days_is_not_taken() -> None:
    answer = httpx.Response(200, json=envelope({"from": "2026-01-01", "to": "2026-01-02", "days": [], "total": {}}))

    async def ask() -> None:
        transport = httpx.MockTransport(lambda _: answer)
        async with AsyncPoints(KEY, URL, transport=transport, patience_s=0) as points:
            await points.statement(from_="2026-01-01", to="2026-01-31")

    with pytest.raises(PointsError, match="it is of other days"):
        asyncio.run(ask())


def test_the_fake_does_not_guess() -> None:
    calls: tuple[Callable[[Points], object], ...] = (
        lambda points: points.batches.cancel(1),
        lambda points: points.rehearsing.set_clock("tomorrow"),
        lambda points: points.send(**BODY, hold_days=1),
        lambda points: points.send(recipients=["jörg@exämple.com"], amount=1),
        lambda points: list(points.transactions.list(created_from=MOMENT)),
        lambda points: list(points.events.list()),
        lambda points: list(points.batches.list(email="a@b.cc")),
    )
    with Points(KEY, URL, transport=FakePoints()) as points:
        for call in calls:
            with pytest.raises(NotInFake, match="run the service itself"):
                call(points)
