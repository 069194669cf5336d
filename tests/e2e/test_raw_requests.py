"""What the application never sees, and bodies that are too large or never end: all answered in the envelope."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.local import ports
from tests.deadline import until
from tests.e2e.raw_http import exchange
from tests.ports import free_port
from tests.service.inside import Service

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
        until(lambda: not ports.is_free(port))
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
        until(lambda request_id=request_id: request_id in log.read_text())
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
