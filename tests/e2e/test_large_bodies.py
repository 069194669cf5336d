"""Bodies that are too large, come slowly or never end: the caller gets the answer, and nobody else waits for it."""

import contextlib
import http.client
import json
import socket

import pytest

from tests.e2e.raw_http import exchange
from tests.service.inside import Service


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


def test_chunks_that_are_none_behind_an_answer_bring_no_second_one(service: Service) -> None:
    head = b"POST /v1/nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = exchange(service.port, head + b"nonsense\r\n")
    assert (answer.status, answer.rest) == (404, b"")
