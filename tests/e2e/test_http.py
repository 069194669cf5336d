"""What HTTP promises beside the body: being told to go on, time for a slow body, and answers that are compressed."""

import contextlib
import gzip
import json
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPResponse

import pytest

from tests.e2e.bad_input.cases import GOOD, KEY, SEND, VERIFY, call, get
from tests.e2e.raw_http import Answer, exchange, exchange_slowly, first_bytes
from tests.pace import in_time
from tests.service.inside import Organization, Service

_EXPECTS, _GO_ON = b"Expect: 100-continue", b"HTTP/1.1 100 Continue\r\n\r\n"
# A request has 20 s to arrive.
_PAUSE_S = 21.0
_BLANKS = b" " * 60_000
_CHUNK = b"%x\r\n%b\r\n" % (len(_BLANKS), _BLANKS)
_LAST_CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(GOOD), GOOD)
_CHUNKED = b"Transfer-Encoding: chunked"

# The pieces of a request that comes with a pause, and the status of its answer.
_SLOW = {
    "a body that stops": ([call("POST", VERIFY, body=GOOD[:10], length=b"1000")], 408),
    "a send that stops": ([call("POST", SEND, body=GOOD[:10], length=b"1000")], 408),
    "chunks that stop": ([call("POST", VERIFY, _CHUNKED, body=b"ff\r\n{", framed=False)], 408),
    "a cancel that stops": ([call("POST", b"/v1/batches/1/cancel", length=b"10")], 408),
    "a long body of a good key": ([call("POST", VERIFY, body=_BLANKS, length=b"%d" % (60_000 + len(GOOD))), GOOD], 200),
    "long chunks of a good key": ([call("POST", VERIFY, _CHUNKED, body=_CHUNK, framed=False), _LAST_CHUNKS], 200),
    "a long body of a bad key": ([call("POST", VERIFY, body=_BLANKS, length=b"99999", key=b"Bearer x")], 401),
}


@pytest.fixture(scope="module")
def caller(service: Service) -> Organization:
    return service.organization(1_000)


@pytest.fixture(scope="module", autouse=True)
def slow(service: Service, caller: Organization) -> Iterator[dict[str, Future[Answer]]]:
    """Begin the slow requests before the other tests, which need not wait for them."""
    with ThreadPoolExecutor(len(_SLOW)) as pool:
        yield {
            name: pool.submit(
                exchange_slowly,
                service.port,
                [piece.replace(KEY, caller.live.encode()) for piece in pieces],
                pause_s=_PAUSE_S,
            )
            for name, (pieces, _) in _SLOW.items()
        }


def _head(caller: Organization, target: bytes, length: int, *, key: bool = True) -> bytes:
    known = b"Bearer " + (caller.live.encode() if key else b"pts_live_" + b"0" * 49)
    return call("POST", target, _EXPECTS, length=b"%d" % length, key=known)


@pytest.mark.parametrize("target", [VERIFY, SEND])
def test_a_caller_is_told_to_go_on_once_its_key_and_size_are_right(
    service: Service, caller: Organization, target: bytes
) -> None:
    assert first_bytes(service.port, _head(caller, target, 8_388_609)).startswith(b"HTTP/1.1 413 ")
    refused = first_bytes(service.port, _head(caller, target, len(GOOD), key=False))
    assert refused.startswith(b"HTTP/1.1 401 ")
    assert b"Connection: close" in refused
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        for _ in range(2):  # Told to go on, a caller keeps its connection.
            connection.sendall(_head(caller, target, len(GOOD)))
            assert connection.recv(len(_GO_ON)) == _GO_ON
            connection.sendall(GOOD)
            assert _read(connection) == "keep-alive"
        # A body that came along unasked needs no word.
        connection.sendall(_head(caller, target, len(GOOD)) + GOOD)
        assert connection.recv(13, socket.MSG_PEEK) in (b"HTTP/1.1 200 ", b"HTTP/1.1 201 ")


def _read(connection: socket.socket) -> str | None:
    with contextlib.closing(HTTPResponse(connection, method="POST")) as answer:
        answer.begin()
        assert (answer.status, json.loads(answer.read())["success"]) in ((200, True), (201, True))
        return answer.headers["Connection"]


def test_a_refused_caller_that_expected_to_go_on_gets_one_answer_and_the_connection_ends_at_once(
    service: Service, caller: Organization
) -> None:
    for body in (b"", GOOD):
        answer = exchange(service.port, _head(caller, SEND, len(GOOD), key=False) + body)
        assert (answer.status, answer.rest) == (401, b"")
        assert in_time(answer.elapsed_s, 5)


def test_an_answer_of_more_than_a_kilobyte_is_compressed_when_asked(service: Service, caller: Organization) -> None:
    items = [{"email": f"{number}@example.com", "amount": 1} for number in range(3)]
    body = json.dumps({"items": items}).encode()
    faults = json.dumps({"recipients": ["x"] * 100, "amount": 1}).encode()
    for written, status in (
        (call("POST", SEND, b"<AE>", body=body), 201),
        (call("POST", SEND, b"<AE>", body=faults), 400),
        (get(b"/v1/transactions", b"<AE>"), 200),
        (get(b"/openapi.json", b"<AE>"), 200),
        (get(b"/docs/call.js", b"<AE>"), 200),
        (call("HEAD", b"/openapi.json", b"<AE>", framed=False, content_type=None), 200),
    ):
        request = written.replace(KEY, caller.live.encode())
        for accepts, is_gzip in {"gzip": True, "br, *;q=0.1": True, "gzip;q=0": False, "br": False, "": False}.items():
            answer = exchange(service.port, request.replace(b"<AE>", b"Accept-Encoding: " + accepts.encode()))
            assert (answer.status, answer.headers["Content-Encoding"]) == (status, "gzip" if is_gzip else None)
            assert answer.headers["Vary"] == "Accept, Authorization"
            assert ("Transfer-Encoding" in answer.headers) == (status == 400)
            content = gzip.decompress(answer.body) if is_gzip and answer.body else answer.body
            if status != 400:
                assert int(answer.headers["Content-Length"]) == len(answer.body) or request.startswith(b"HEAD")
            assert len(content) > 1_024 or request.startswith(b"HEAD")
            if is_gzip and content:
                assert len(answer.body) < len(content) / 2


def test_a_short_answer_and_a_page_with_a_token_are_not_compressed(service: Service, caller: Organization) -> None:
    asks = b"Accept-Encoding: gzip"
    for request in (
        get(b"/v1/organization", asks),
        call("POST", SEND, asks, body=b"{}"),
        call("GET", b"/console/sign-in", asks, key=None, content_type=None, framed=False),
    ):
        answer = exchange(service.port, request.replace(KEY, caller.live.encode()))
        assert answer.status in (200, 400)
        assert answer.headers["Content-Encoding"] is None
        assert answer.body


def test_a_slow_body_is_a_408_and_a_good_key_has_time_for_a_long_one(slow: dict[str, Future[Answer]]) -> None:
    answers = {name: future.result() for name, future in slow.items()}
    assert {name: answer.status for name, answer in answers.items()} == {
        name: status for name, (_, status) in _SLOW.items()
    }
    for answer in answers.values():
        if answer.status == 408:
            assert json.loads(answer.body)["additional_data"] == {"code": "body_too_slow"}
            assert (answer.headers["Connection"], answer.rest) == ("close", b"")
            assert 15 < answer.elapsed_s < 25
