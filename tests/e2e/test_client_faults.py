"""Whatever becomes of a call on its way, the client's sends are paid exactly once."""

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from functools import partial

import pytest

from points_client import NoAnswer, attempts
from tests.client_halves import HALVES, points_of
from tests.e2e.faulty_front import HTML, JSON, FaultyFront, Kind, Request, Wire, answered
from tests.service.inside import Service

CALLERS = 16
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
    for place in range(start, len(whole)):
        wire.send(whole[place : place + 1])
        time.sleep(0.1)


def _in_pieces(wire: Wire, request: Request, *, upto: int) -> None:
    """Send the answer in chunks, without the last ones."""
    head, _, body = wire.passed_on(request).partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
    wire.send(b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b""]))
    for place in range(0, upto, 50):
        piece = body[place : place + 50]
        wire.send(b"%x\r\n%s\r\n" % (len(piece), piece))
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
    "closed after": partial(_after, end=Wire.close),
    "reset after": partial(_after, end=Wire.reset),
    "reset meanwhile": _while_it_is_done,
    "half a head": partial(_changed, change=partial(_half, of_what="head")),
    "half a body": partial(_changed, change=partial(_half, of_what="body")),
    "half without length": partial(_changed, change=partial(_half, of_what="no length")),
    "no HTTP": partial(_changed, change=lambda _: b"\x15\x03\x01\x00\x02\x02\x50"),
    "a header without end": partial(_changed, change=partial(_header, line=b"X-Long: " + b"x" * 200_000)),
    "an empty answer": partial(_instead, answer=answered(201, b"", {"Content-Type": JSON})),
    "chunks cut": partial(_in_pieces, upto=150),
    **{f"{status} before": partial(_only, answer=_page(status)) for status in (408, 429, 500, 502, 503, 504)},
    **{f"{status} after": partial(_instead, answer=_page(status)) for status in (408, 429, 500, 502, 503, 504)},
    "503 for a second": partial(_only, answer=_page(503, {"Retry-After": "1"})),
    "429 until then": partial(_only, answer=_page(429, {"Retry-After": formatdate(time.time() + 1, usegmt=True)})),
    "503 until never": partial(_only, answer=_page(503, {"Retry-After": "Sat, 31 Jan 99999 00:00:00 GMT"})),
    "503 with nonsense": partial(_only, answer=_page(503, {"Retry-After": "soon"})),
    "503 of the service": partial(_only, answer=_document(503, {"errors": {"service": ["Away."]}})),
    "429 of the service": partial(_only, answer=_document(429, {"errors": {"rate_limit": ["Slow down."]}})),
}
# No answer in time, or not the whole of it.
SILENT: dict[str, Kind] = {
    "silent before": partial(_before, end=Wire.hang),
    "silent after": partial(_after, end=Wire.hang),
    "drops of a body": partial(_in_drops, start=200),
}
# Only somebody else answers so: there is no clear answer, and the caller asks again with the key.
STRANGE: dict[str, Kind] = {
    "page after": partial(_instead, answer=_page(403)),
    "empty answer": partial(_instead, answer=b"HTTP/1.1 204 Nothing\r\n\r\n"),
    "answer to another send": partial(_instead, answer=_document(201, _STRANGE | _WHOLE)),
    "encoding": partial(_changed, change=partial(_header, line=b"Content-Encoding: gzip")),
}
ANSWERED = {**PASSING, **{f"strange {name}": kind for name, kind in STRANGE.items()}}


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize(("kinds", "try_s"), [(ANSWERED, 30.0), (SILENT, 1.5)], ids=["answered", "silent"])
def test_every_send_is_paid_once_whatever_becomes_of_its_first_tries(
    service: Service, monkeypatch: pytest.MonkeyPatch, kinds: Mapping[str, Kind], try_s: float, half: str, times: int
) -> None:
    monkeypatch.setattr(attempts, "TRY_S", try_s)
    caller = service.organization(10 * len(kinds))
    faults = {name.replace(" ", "-"): kind for name, kind in kinds.items()}
    with (
        FaultyFront(service.port, faults, times=times) as front,
        points_of(half, caller.live, front.url) as points,
        ThreadPoolExecutor(CALLERS) as pool,
    ):

        def send(key: str) -> int:
            """Send until it is issued, and return how often there was no answer."""
            for failed in range(times + 1):
                try:
                    sent = points.send(recipients=[f"{key}@cut.example.com"], amount=3, idempotency_key=key)
                except NoAnswer as error:
                    assert error.key == key  # noqa: PT017  # Not each kind raises.
                else:
                    assert (sent.status, [one.debited for one in sent.transactions]) == ("issued", [True])
                    assert sent.replayed is (failed > 0), "by an earlier call, not by an earlier try"
                    return failed
            raise AssertionError(f"{key} is not issued")

        unanswered = dict(zip(faults, pool.map(send, faults), strict=True))
        assert front.seen == dict.fromkeys(faults, times)
        assert unanswered == {key: times if key.startswith("strange-") else 0 for key in faults}
        paid = [one.email for one in points.transactions.list(page_size=1000)]
        assert sorted(paid) == sorted(f"{key}@cut.example.com" for key in faults)
        assert points.organization().balance == 7 * len(kinds)


@pytest.mark.parametrize("half", HALVES)
def test_a_run_that_is_broken_off_goes_on_and_pays_nobody_twice(service: Service, half: str) -> None:
    caller = service.organization(10_000)
    emails = [f"{number}@run.example.com" for number in range(40)]
    kinds = ["reset before", "closed after", "half a body", "502 after", "reset meanwhile", "503 of the service"]
    faults = {f"2026-03-part-{number}": PASSING[kind] for number, kind in enumerate(kinds, start=1)}
    with FaultyFront(service.port, faults) as front, points_of(half, caller.live, front.url) as points:
        begun = points.send_all(emails, run="2026-03", amount=5, part_size=7)
        for _ in range(10):  # Then the program ends, with parts on their way.
            next(begun)
        done = list(points.send_all(emails, run="2026-03", amount=5, part_size=7))
        del begun  # While its event loop runs.
    assert [one.email for one in done] == emails
    assert service.balance(caller.live) == 10_000 - 40 * 5
