"""Whatever becomes of a call on its way, the client's sends are paid exactly once."""

import asyncio
import contextlib
import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from functools import partial
from typing import NamedTuple

import pytest

from points_client import AsyncPoints, Invalid, NoAnswer, Points, Sent
from tests.e2e.faulty_front import HTML, JSON, FaultyFront, Kind, Request, Wire, answered
from tests.forks import in_children
from tests.service.inside import Service

FORKED, CHILDREN = 1_000, 8
SENDS, CALLERS, SEED = int(os.environ.get("CLIENT_SENDS", "500")), 16, 36
Bytes = Callable[[bytes], bytes]


def _only(wire: Wire, _request: Request, *, answer: bytes) -> None:
    """Answer without passing it on, and go on with the connection."""
    wire.send(answer)


def _instead(wire: Wire, request: Request, *, answer: bytes) -> None:
    """Pass it on, and answer something else."""
    wire.passed_on(request)
    wire.send(answer)


def _changed(wire: Wire, request: Request, *, change: Bytes) -> None:
    """Pass it on, and send a changed answer, which ends with the connection."""
    wire.send(change(wire.passed_on(request)))
    wire.close()


def _before(wire: Wire, _request: Request, *, end: Callable[[Wire], None]) -> None:
    end(wire)


def _after(wire: Wire, request: Request, *, end: Callable[[Wire], None]) -> None:
    wire.passed_on(request)
    end(wire)


def _while_it_is_done(wire: Wire, request: Request) -> None:
    wire.delivered_only(request)
    wire.reset()


def _in_drops(wire: Wire, request: Request, *, start: int) -> None:
    """Send the answer slower than anybody waits, byte by byte from `start` on."""
    whole = wire.passed_on(request)
    wire.send(whole[:start])
    for place in range(start, min(start + 40, len(whole))):
        wire.send(whole[place : place + 1])
        time.sleep(0.1)
    wire.close()


def _in_pieces(wire: Wire, request: Request, *, upto: int | None) -> None:
    """Send the answer in chunks: all, or without the last ones."""
    head, _, body = wire.passed_on(request).partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
    wire.send(b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b""]))
    for place in range(0, len(body) if upto is None else upto, 50):
        piece = body[place : place + 50]
        wire.send(b"%x\r\n%s\r\n" % (len(piece), piece))
    if upto is None:
        wire.send(b"0\r\n\r\n")
    else:
        wire.close()


def _half(whole: bytes, *, of_what: str) -> bytes:
    head, end, body = whole.partition(b"\r\n\r\n")
    if of_what == "head":
        return head[: len(head) // 2]
    if of_what == "no length":
        head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length"))
    return head + end + body[: len(body) // 2]


def _header(whole: bytes, *, line: bytes) -> bytes:
    head, end, body = whole.partition(b"\r\n\r\n")
    return head + b"\r\n" + line + end + body


def _later(whole: bytes) -> bytes:
    time.sleep(0.5)
    return whole


def _page(status: int, headers: dict[str, str] | None = None) -> bytes:
    return answered(status, HTML, {"Content-Type": "text/html", **(headers or {})})


def _document(status: int, document: object, headers: dict[str, str] | None = None) -> bytes:
    return answered(status, json.dumps(document).encode(), {"Content-Type": JSON, **(headers or {})})


_STRANGE = {"success": True, "data": {"transactions": [], "amount": 0, "current_balance": 0}, "errors": None}
_WHOLE = {"additional_data": {"version": "1.0", "batch_id": 1}}
# As the service and its gateways answer when they are away: the same is sent again with its key.
PASSING: dict[str, Kind] = {
    "closed before": partial(_before, end=Wire.close),
    "reset before": partial(_before, end=Wire.reset),
    "silent before": partial(_before, end=Wire.hang),
    "closed after": partial(_after, end=Wire.close),
    "reset after": partial(_after, end=Wire.reset),
    "silent after": partial(_after, end=Wire.hang),
    "reset meanwhile": _while_it_is_done,
    "half a head": partial(_changed, change=partial(_half, of_what="head")),
    "half a body": partial(_changed, change=partial(_half, of_what="body")),
    "half without length": partial(_changed, change=partial(_half, of_what="no length")),
    "status line only": partial(_changed, change=lambda whole: whole[:15]),
    "one byte": partial(_changed, change=lambda whole: whole[:1]),
    "no HTTP": partial(_changed, change=lambda _: b"\x15\x03\x01\x00\x02\x02\x50"),
    "an impossible status": partial(_changed, change=lambda whole: whole.replace(b"HTTP/1.1 201", b"HTTP/1.1 xyz", 1)),
    "HTTP of another age": partial(_changed, change=lambda whole: whole.replace(b"HTTP/1.1", b"HTTP/9.9", 1)),
    "two lengths": partial(_changed, change=partial(_header, line=b"Content-Length: 3")),
    "a length of words": partial(
        _changed, change=lambda whole: whole.replace(b"Content-Length: ", b"Content-Length: x", 1)
    ),
    "a header without name": partial(_changed, change=partial(_header, line=b": nothing")),
    "a header without end": partial(_changed, change=partial(_header, line=b"X-Long: " + b"x" * 200_000)),
    "drops of a head": partial(_in_drops, start=3),
    "drops of a body": partial(_in_drops, start=200),
    "an empty answer": partial(_instead, answer=answered(201, b"", {"Content-Type": JSON})),
    "chunks cut": partial(_in_pieces, upto=150),
    "chunks cut at once": partial(_in_pieces, upto=0),
    **{f"{status} before": partial(_only, answer=_page(status)) for status in (408, 429, 500, 502, 503, 504)},
    **{f"{status} after": partial(_instead, answer=_page(status)) for status in (408, 429, 500, 502, 503, 504)},
    "503 for a second": partial(_only, answer=_page(503, {"Retry-After": "1"})),
    "429 until then": partial(_only, answer=_page(429, {"Retry-After": formatdate(time.time() + 1, usegmt=True)})),
    "503 until never": partial(_only, answer=_page(503, {"Retry-After": "Sat, 31 Jan 99999 00:00:00 GMT"})),
    "503 with nonsense": partial(_only, answer=_page(503, {"Retry-After": "soon"})),
    "503 of the service": partial(_only, answer=_document(503, {"errors": {"service": ["Away."]}})),
    "429 of the service": partial(_only, answer=_document(429, {"errors": {"rate_limit": ["Slow down."]}})),
}
# Only somebody else answers so: there is no clear answer, and the caller asks again with the key.
STRANGE: dict[str, Kind] = {
    **{f"{status} after": partial(_instead, answer=_page(status)) for status in (400, 401, 403, 404, 413, 422, 451)},
    "200 with HTML": partial(_instead, answer=_page(200)),
    "201 of somebody": partial(_instead, answer=_document(201, {"id": 1})),
    "201 of another send": partial(_instead, answer=_document(201, _STRANGE | _WHOLE)),
    "201 with an array": partial(_instead, answer=_document(201, [])),
    "204 after": partial(_instead, answer=b"HTTP/1.1 204 Nothing\r\n\r\n"),
    "520 after": partial(_instead, answer=_page(520)),
    "an empty page": partial(_instead, answer=answered(200, b"", {"Content-Type": "text/html"})),
    "no gzip": partial(_changed, change=partial(_header, line=b"Content-Encoding: gzip")),
    "deep nesting": partial(_instead, answer=answered(201, b"[" * 100_000, {"Content-Type": "text/plain"})),
    "errors of another form": partial(_instead, answer=_document(403, {"errors": {"code": 500}})),
}
# Odd, and an answer all the same.
HARMLESS: dict[str, Kind] = {
    "whole chunks": partial(_in_pieces, upto=None),
    "an early hint": partial(_changed, change=lambda whole: b"HTTP/1.1 103 Hint\r\n\r\n" + whole),
    "after a while": partial(_changed, change=_later),
    "closed politely": partial(_changed, change=partial(_header, line=b"Connection: close")),
}
KINDS = {**PASSING, **{f"strange: {name}": kind for name, kind in STRANGE.items()}, **HARMLESS}


def test_every_send_is_paid_once_through_every_kind_of_fault(service: Service) -> None:
    assert len(KINDS) >= 62
    caller = service.organization(10 * SENDS)
    # Half of the tries are passed on, and each kind comes many times.
    order: list[str | None] = [name for name in KINDS for _ in range(max(1, SENDS // len(KINDS)))]
    order += [None] * len(order)
    random.Random(SEED).shuffle(order)  # noqa: S311  # It is to be repeated, not secret.
    asked_again: Counter[str] = Counter()
    with (
        FaultyFront(service.port, KINDS, order) as front,
        Points(caller.live, front.url) as points,
        ThreadPoolExecutor(CALLERS) as pool,
    ):

        def send(number: int) -> tuple[int, int]:
            email, key = f"{number}@cut.example.com", None if number % 2 else f"cut-{number}"
            while True:
                try:
                    sent = points.send(
                        items=[{"email": email, "reference": f"cut-{number}"}],
                        amount=3,
                        idempotency_key=key,
                        wait_s=4,
                    )
                except NoAnswer as error:
                    key = error.key
                    asked_again[type(error).__name__] += 1
                    continue
                if sent.status == "issued":
                    [transaction] = sent.transactions
                    assert (transaction.debited, transaction.email) == (True, email)
                    return sent.batch_id, transaction.id
                key = sent.idempotency_key

        found = list(pool.map(send, range(SENDS)))
    assert set(KINDS) <= set(front.seen)
    assert len(set(found)) == SENDS
    with Points(caller.live, service.url) as points:
        paid = Counter(one.reference for one in points.transactions.list(page_size=1000))
        assert paid == {f"cut-{number}": 1 for number in range(SENDS)}
        assert points.organization().balance == 7 * SENDS
        assert len({batch.idempotency_key for batch in points.batches.list(page_size=1000)}) == SENDS
    print(f"{SENDS} sends, {sum(front.seen.values())} calls, {len(KINDS)} kinds, asked again: {dict(asked_again)}")


class Outcome(NamedTuple):
    """What became of one send: its outcome or its error, after so many seconds, and the balance of 10 then."""

    found: Sent | Exception
    seconds: float
    balance: int


@pytest.fixture(scope="module")
def outcomes(service: Service) -> dict[str, Outcome]:
    """Send once through each kind, several at the same time."""

    def send(name: str) -> Outcome:
        caller = service.organization(10)
        with FaultyFront(service.port, KINDS, [name]) as front, Points(caller.live, front.url) as points:
            began = time.monotonic()
            try:
                found: Sent | Exception = points.send(recipients=["ann@example.com"], amount=4, wait_s=6)
            except Exception as error:  # noqa: BLE001  # It is looked at below.
                found = error
            return Outcome(found, time.monotonic() - began, service.balance(caller.live))

    with ThreadPoolExecutor(CALLERS) as pool:
        return dict(zip(KINDS, pool.map(send, KINDS), strict=True))


@pytest.mark.parametrize("name", [*PASSING, *HARMLESS])
def test_what_passes_is_answered_in_the_same_call(outcomes: dict[str, Outcome], name: str) -> None:
    found, seconds, balance = outcomes[name]
    assert isinstance(found, Sent), found
    assert (found.status, found.amount, found.current_balance, balance) == ("issued", 4, 6, 6)
    assert seconds < 7, "one clock bounds all tries"


@pytest.mark.parametrize("name", STRANGE)
def test_what_somebody_else_answers_is_no_answer_with_the_key(outcomes: dict[str, Outcome], name: str) -> None:
    found, _, balance = outcomes[f"strange: {name}"]
    assert isinstance(found, NoAnswer), found
    assert found.key is not None
    assert balance == 6, "it was passed on"


def test_an_asynchronous_send_is_answered_or_carries_its_key(service: Service) -> None:
    caller = service.organization(100)

    async def send(url: str, kind: str) -> None:
        async with AsyncPoints(caller.live, url) as points:
            key = re.sub(r"[^!-~]", "-", kind)
            try:
                await points.send(recipients=["ann@example.com"], amount=1, idempotency_key=key, wait_s=4)
            except NoAnswer as error:
                assert error.key == key  # noqa: PT017  # Not each kind raises.
            sent = await points.send(recipients=["ann@example.com"], amount=1, idempotency_key=key)
            assert sent.status == "issued"

    async def send_all() -> None:
        with contextlib.ExitStack() as stack:
            fronts = {name: stack.enter_context(FaultyFront(service.port, KINDS, [name])) for name in KINDS}
            await asyncio.gather(*(send(front.url, name) for name, front in fronts.items()))

    asyncio.run(send_all())
    assert service.balance(caller.live) == 100 - len(KINDS)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_processes_get_their_own_answers(service: Service) -> None:
    caller = service.organization(2 * FORKED)
    with Points(caller.live, service.url) as points:
        assert points.organization().balance == 2 * FORKED

        def work(child: int) -> None:
            for number in range(FORKED // CHILDREN):
                email = f"{child}-{number}@fork.example.com"
                if number % 5 == 4:
                    with pytest.raises(Invalid):
                        points.send(recipients=[email], amount=0)
                else:
                    assert [one.email for one in points.send(recipients=[email], amount=2).transactions] == [email]

        assert in_children(work, CHILDREN) == [0] * CHILDREN
        paid = [one.email for one in points.transactions.list(page_size=1000)]
        assert len(set(paid)) == len(paid) == FORKED * 4 // 5
        assert points.organization().balance == 2 * FORKED - 2 * len(paid)


def test_a_run_that_is_broken_off_goes_on_and_pays_nobody_twice(service: Service) -> None:
    caller = service.organization(10_000)
    emails = [f"{number}@run.example.com" for number in range(40)]
    kinds = ["reset before", "closed after", "half a body", "502 after", "reset meanwhile", "503 of the service"]
    with (
        FaultyFront(service.port, KINDS, [*kinds]) as front,
        Points(caller.live, front.url) as points,
    ):
        begun = points.send_all(emails, run="2026-03", amount=5, part_size=7)
        for _ in range(10):  # Then the program ends, with parts on their way.
            next(begun)
        done = list(points.send_all(emails, run="2026-03", amount=5, part_size=7))
    assert [one.email for one in done] == emails
    assert service.balance(caller.live) == 10_000 - 40 * 5
