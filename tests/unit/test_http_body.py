"""Reading a body over HTTP: its type, its size, and bytes that break off."""

import io
import json
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.settings import settings
from app.web.application import create_app
from tests.unit.answers import AUTHORIZED, data_of, errors_of
from tests.unit.bodies import body_with

pytestmark = pytest.mark.usefixtures("calling")

VERIFY = "/v1/points/verify"
both_calls = pytest.mark.parametrize("path", [VERIFY, "/v1/points/send"])


@both_calls
@pytest.mark.parametrize(
    "content_type", [None, "", "text/plain", "text/json", "application/x-www-form-urlencoded", "application/jsonx",
                     "application/problem+json", "multipart/form-data; boundary=x", "json"],
)  # fmt: skip
def test_a_body_of_another_type_is_415(client: FlaskClient, path: str, content_type: str | None) -> None:
    body = json.dumps(body_with())
    response = client.post(path, data=body, content_type=content_type, headers=AUTHORIZED)
    [sentence] = errors_of(response, 415)["content_type"]
    assert sentence.startswith("The Content-Type must be application/json, but is ")


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"]
)
def test_a_charset_parameter_is_fine(client: FlaskClient, content_type: str) -> None:
    response = client.post(VERIFY, data=json.dumps(body_with()), content_type=content_type, headers=AUTHORIZED)
    assert data_of(response, 200) == {"validated": True, "error": None}


@both_calls
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_a_compressed_body_is_415(client: FlaskClient, path: str, encoding: str) -> None:
    response = client.post(path, json=body_with(), headers=AUTHORIZED | {"Content-Encoding": encoding})
    assert list(errors_of(response, 415)) == ["content_type"]


@pytest.mark.parametrize("encoding", ["identity", "Identity", ""])
def test_a_body_that_is_said_not_to_be_compressed_is_fine(client: FlaskClient, encoding: str) -> None:
    response = client.post(VERIFY, json=body_with(), headers=AUTHORIZED | {"Content-Encoding": encoding})
    assert response.status_code == 200


@both_calls
def test_the_faults_of_a_body_are_400(client: FlaskClient, path: str) -> None:
    response = client.post(path, json={}, headers=AUTHORIZED)
    assert set(errors_of(response, 400)) == {"amount", "recipient", "recipients"}
    assert "Content-Length" not in response.headers  # So it is sent chunked.


@both_calls
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_malformed_body_is_400(client: FlaskClient, path: str, body: bytes) -> None:
    response = client.post(path, data=body, content_type="application/json", headers=AUTHORIZED)
    assert list(errors_of(response, 400)) == ["body"]


@pytest.mark.parametrize("is_chunked", [False, True], ids=["with a length", "chunked"])
def test_a_body_may_have_as_many_bytes_as_the_limit_and_no_more(
    *, is_chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_BODY_BYTES_MAX", "2000")
    client = create_app().test_client()

    def post(length: int) -> TestResponse:
        body = json.dumps(body_with()).encode().ljust(length)
        chunked = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
        framing: dict[str, Any] = chunked if is_chunked else {"CONTENT_LENGTH": str(length)}
        return client.post(
            VERIFY,
            input_stream=io.BytesIO(body),
            content_type="application/json",
            headers=AUTHORIZED,
            environ_overrides=framing,
        )

    assert data_of(post(2_000), 200)["validated"]
    for too_long in (2_001, 2_002, 100_000):
        assert errors_of(post(too_long), 413) == {"body": ["The body must have at most 2000 bytes, but has more."]}


@pytest.mark.usefixtures("calling")
def test_a_body_that_nobody_reads_may_be_no_longer_than_any_other(client: FlaskClient) -> None:
    length = settings().body_bytes_max + 1
    response = client.post("/v1/sandbox/reset", headers=AUTHORIZED, environ_overrides={"CONTENT_LENGTH": str(length)})
    assert list(errors_of(response, 413)) == ["body"]


class _Broken(io.RawIOBase):
    """A body in the middle of which something goes wrong."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def readable(self) -> bool:
        return True

    def readinto(self, _buffer: object) -> int:
        raise self._error


@both_calls
@pytest.mark.parametrize(
    "stream",
    [io.BytesIO(b'{"amount": 1'), _Broken(OSError("connection reset"))],
    ids=["ended early", "reset"],
)
def test_a_body_that_breaks_off_is_400(client: FlaskClient, path: str, stream: io.IOBase) -> None:
    response = client.post(
        path,
        content_type="application/json",
        headers=AUTHORIZED,
        environ_overrides={"CONTENT_LENGTH": "1000", "wsgi.input": stream},
    )
    assert list(errors_of(response, 400)) == ["request"]
