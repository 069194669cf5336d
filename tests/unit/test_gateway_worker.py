"""The gateway below the application: bytes that are no request are answered in the envelope too."""

import json
import logging
import socket
from collections.abc import MutableMapping
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import (
    InvalidHeader,
    InvalidRequestLine,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
)
from prometheus_client import REGISTRY
from structlog.contextvars import bind_contextvars

from app.api.gateway_worker import GatewayWorker


def answer_to(error: Exception, request: object = None) -> tuple[str, dict[str, str], bytes]:
    """Return what a peer whose bytes raised `error` reads: the first line, the headers and the rest."""
    worker = GatewayWorker.__new__(GatewayWorker)
    worker.log = logging.getLogger("gateway")
    worker.cfg = Config()
    peer, ours = socket.socketpair()
    with peer:
        with ours:
            worker.handle_error(request, ours, None, error)
        read = b"".join(iter(lambda: peer.recv(65_536), b""))
    head, _, body = read.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InvalidRequestLine("nonsense"), "The bytes sent are not a well-formed HTTP request."),
        (InvalidHeader("x"), "The bytes sent are not a well-formed HTTP request."),
        (LimitRequestLine(5000, 4094), "The request line must have at most 4094 bytes, but has more."),
        (
            LimitRequestHeaders("x"),
            "The request must have at most 100 headers of at most 8190 bytes each, but has more.",
        ),
    ],
)
def test_bytes_that_are_no_request_are_answered_in_the_envelope(error: Exception, sentence: str) -> None:
    first, headers, body = answer_to(error)
    assert first == "HTTP/1.1 400 Bad Request"
    length, _, rest = body.partition(b"\r\n")
    document = json.loads(rest[: int(length, 16)])
    assert rest[int(length, 16) :] == b"\r\n0\r\n\r\n"  # Chunked, and complete.
    assert list(document) == ["success", "data", "errors", "additional_data"]
    assert (document["success"], document["data"], document["additional_data"]) == (False, None, None)
    assert document["errors"] == {"request": [sentence]}
    assert headers["X-Request-Id"]
    assert headers["Content-Type"] == "application/json"


def test_such_a_400_carries_the_headers_of_the_interface_document() -> None:
    _, headers, _ = answer_to(InvalidRequestLine("nonsense"))
    named = ["Connection", "Date", "Server", "Cache-Control", "Vary", "Transfer-Encoding", "Content-Type", "Via"]
    assert set(named) <= set(headers)
    assert headers["Transfer-Encoding"] == "chunked"
    assert headers["Cache-Control"] == "no-store, private"
    assert headers["Vary"] == "Accept, Authorization"
    assert headers["Via"] == "1.1 points"
    assert not any(character.isdigit() for character in headers["Server"])  # It gives no version.


def test_such_a_400_is_counted_and_its_line_is_not_taken_for_one_of_the_request_before(
    events: list[MutableMapping[str, Any]],
) -> None:
    def counted() -> float:
        labels = {"method": "other", "route": "no route", "status": "400"}
        return REGISTRY.get_sample_value("points_requests_total", labels) or 0

    before = counted()
    bind_contextvars(request_id="the one before")
    answer_to(InvalidRequestLine("nonsense"))
    assert counted() - before == 1
    assert [event["event"] for event in events] == ["not_a_request"]
    assert "before" not in events[0]["request_id"]


@pytest.mark.parametrize("given", [None, "mine", "ada@example.com"])
def test_such_a_400_is_found_in_the_log_by_the_id_that_it_carries(
    given: str | None, events: list[MutableMapping[str, Any]]
) -> None:
    request = SimpleNamespace(headers=[("X-REQUEST-ID", given)] if given else [])
    _, headers, _ = answer_to(InvalidRequestLine("nonsense"), request)
    told = headers["X-Request-Id"]
    assert given in (None, told)
    assert events[0]["request_id"] == (sha256(told.encode()).hexdigest()[:32] if "@" in told else told)


def test_a_peer_that_is_gone_is_no_error() -> None:
    worker = GatewayWorker.__new__(GatewayWorker)
    worker.log = logging.getLogger("gateway")
    peer, ours = socket.socketpair()
    peer.close()
    with ours:
        worker.handle_error(None, ours, None, InvalidRequestLine("nonsense"))


def test_an_idempotency_key_sent_twice_is_refused_because_wsgi_would_make_another_of_it() -> None:
    worker = GatewayWorker.__new__(GatewayWorker)
    twice = [("IDEMPOTENCY-KEY", "a"), ("IDEMPOTENCY-KEY", "a")]
    request = SimpleNamespace(headers=[("HOST", "x"), ("X-REQUEST-ID", "mine"), *twice])
    with pytest.raises(ParseException) as caught:
        worker.handle_request(request, None)
    first, headers, body = answer_to(caught.value, request)
    assert (first, headers["X-Request-Id"]) == ("HTTP/1.1 400 Bad Request", "mine")
    assert b'"idempotency_key":["The Idempotency-Key must be sent once, but came several times."]' in body
