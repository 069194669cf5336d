"""What the application never sees, and bodies that are too large or never end: all answered in the envelope."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import uuid
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from app.local import ports
from tests.deadline import until
from tests.e2e.raw_http import exchange
from tests.e2e.test_logs import lines
from tests.ports import free_port
from tests.service.inside import Service
from tests.service.up import STARTED_IN_S

_SEEN_WITHIN_S = 30


@pytest.mark.parametrize("name", ["Idempotency_Key", "X-Idempotency-Key"])
def test_an_idempotency_key_under_a_wrong_name_is_told_the_right_one(service: Service, name: str) -> None:
    body = {"recipient": "a@example.com", "amount": 1}
    answer = service.call("POST", "/v1/points/send", key=service.organization(10).live, json=body, headers={name: "k1"})
    assert "spelled Idempotency-Key" in answer.json()["errors"]["idempotency_key"][0]


@pytest.mark.parametrize("given", [b"", b"mine-%b", b"%b@example.com"])
def test_no_request_is_found_in_the_log_by_the_id_of_its_answer(service: Service, given: bytes) -> None:
    given = given.replace(b"%b", uuid.uuid4().hex.encode())
    line = b"X-Request-Id: " + given + b"\r\n" if given else b""
    # With a length that is none, the head can be read.
    twice = b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n"
    answer = exchange(service.port, b"GET /v1/batches HTTP/1.1\r\nHost: x\r\n" + line + twice + b"\r\n")
    told = answer.headers["X-Request-Id"]
    assert told
    assert given.decode() in ("", told)
    logged = sha256(told.encode()).hexdigest()[:32] if "@" in told else told
    until(lambda: bool(lines(service, "not_a_request", f"request_id={logged}")), within_s=_SEEN_WITHIN_S)


_FAULTS = [b"bad header\r\n", b"Idempotency_Key: a\r\n", b"Content-Length: -1\r\n"]


@pytest.mark.parametrize("line", _FAULTS, ids=["no header", "the name of a header", "a length"])
def test_what_is_no_request_gets_no_chunks_in_1_0_and_no_body_for_a_head(service: Service, line: bytes) -> None:
    answer = exchange(service.port, b"GET /v1/batches HTTP/1.0\r\n" + line + b"\r\n")
    assert (answer.status, answer.version, answer.rest) == (400, 10, b"")
    assert "Transfer-Encoding" not in answer.headers
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert json.loads(answer.body)["success"] is False
    for version in (b"1.0", b"1.1"):
        answer = exchange(service.port, b"HEAD /v1/batches HTTP/%b\r\nHost: x\r\n%b\r\n" % (version, line))
        assert (answer.status, answer.body, answer.rest) == (400, b"", b"")
        assert "Transfer-Encoding" not in answer.headers


def test_what_is_no_request_is_counted(service: Service) -> None:
    def counted() -> float:
        figure = re.escape('points_requests_total{method="other",route="no route",status="400"} ')
        found = re.search(rf"^{figure}(\S+)$", service.call("GET", "/metrics").text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    exchange(service.port, b"NONSENSE\r\n\r\n")
    until(lambda: counted() > 0, within_s=_SEEN_WITHIN_S)
    before = counted()
    for _ in range(3):
        exchange(service.port, b"NONSENSE\r\n\r\n")
    until(lambda: counted() >= before + 3, within_s=_SEEN_WITHIN_S)


def test_a_caller_that_is_gone_before_it_is_answered_is_no_error(narrow: Service) -> None:
    mark = uuid.uuid4().hex
    written = len(narrow.output)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", narrow.port), timeout=10) as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # It resets the connection.
            caller.sendall(b"NONSENSE\r\n\r\n")
    assert narrow.call("GET", "/v1/organization", headers={"X-Request-Id": mark}).status_code == 401
    until(lambda: bool(lines(narrow, mark)), within_s=_SEEN_WITHIN_S)
    assert [line for line in narrow.output[written:] if re.search(r"│ [\d:.]+ error|Traceback", line)] == []


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Run a web process whose application fails; give its port, and the file that it logs to."""
    port, log = free_port(), tmp_path / "log"
    command = [sys.executable, "-m", "gunicorn", "--config", "python:tests.e2e.broken_web"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--bind", f"127.0.0.1:{port}"], stdout=output, stderr=output, start_new_session=True
        )
    try:
        until(lambda: not ports.is_free(port), within_s=STARTED_IN_S)
        yield port, log
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_fault_below_the_application_is_500_and_its_line_repeats_nothing(broken: tuple[int, Path]) -> None:
    port, log = broken
    for path, fault in (("/v1/transactions", "ValueError"), ("/header", "InvalidResponseHeader")):
        answer = exchange(port, f"GET {path}?email=ann@example.com HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (answer.status, answer.rest) == (500, b"")
        [sentence] = json.loads(answer.body)["errors"]["service"]
        request_id = answer.headers["X-Request-Id"]
        assert request_id in sentence
        until(lambda request_id=request_id: request_id in log.read_text(), within_s=_SEEN_WITHIN_S)
        [line] = [line for line in log.read_text().splitlines() if request_id in line]
        assert "request_failed" in line
        assert fault in line
    assert "ann@" not in log.read_text()


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/v1/points/send", 8_388_609, 413),
        ("/v1/points/verify", 30_000_000, 413),
        ("/v1/nothing", 8_000_000, 404),
        ("/v1/organization", 8_000_000, 405),
        ("/v1/points/send", 8_000_000, 401),
    ],
)
def test_who_writes_a_whole_body_before_reading_gets_the_answer(
    service: Service, path: str, length: int, status: int, closes: bool
) -> None:
    key = "nonsense" if status == 401 else service.organization(10).live
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    headers |= {"Connection": "close"} if closes else {}
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", path, body=b" " * length, headers=headers)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["success"]) == (status, False)
        if not closes:  # All of the body was read, so the next request is where it ends.
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200


def test_a_body_without_end_is_not_read_for_ever(service: Service) -> None:
    head = b"POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(head)
        with pytest.raises(ConnectionError):
            connection.sendall(b" " * 200_000_000)
