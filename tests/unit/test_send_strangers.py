"""Who may not send learns nothing else, and is read no more than a little."""

import io
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.errors import InvalidKey
from tests.unit.answers import AUTHORIZED, data_of, errors_of
from tests.unit.bodies import body_with
from tests.unit.house import House

_RIGHT = json.dumps(body_with()).encode()
_FAULTS = [
    (b"{", {}),
    (b"[" * 50_000, {}),
    (b"\xff", {}),
    (b"{}", {}),
    (json.dumps(body_with(amount=0, recipients=["no"])).encode(), {}),
    (_RIGHT, {"Idempotency-Key": "a b"}),
    (_RIGHT, {"Content-Type": "text/plain"}),
    (_RIGHT, {"Content-Encoding": "gzip"}),
]
_NAMES = ["malformed", "deep", "no text", "empty", "faults", "idempotency key", "wrong type", "compressed"]


class Body(io.BytesIO):
    """A body that knows whether anybody has read it."""

    is_read = False

    def read(self, size: int | None = -1, /) -> bytes:
        self.is_read = True
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        self.is_read = True
        return super().readinto(buffer)


def post(
    client: FlaskClient, body: Body, headers: Mapping[str, str] = MappingProxyType({}), *, is_chunked: bool = False
) -> TestResponse:
    length = str(len(body.getbuffer()))
    framing: dict[str, Any] = {"wsgi.input_terminated": True} if is_chunked else {"CONTENT_LENGTH": length}
    return client.post(
        "/v1/points/send",
        headers=AUTHORIZED | {"Content-Type": "application/json"} | dict(headers),
        environ_overrides=framing | {"wsgi.input": body},
    )


@pytest.mark.usefixtures("no_rows")
@pytest.mark.parametrize("length", [0, 100_000], ids=["small", "large"])
@pytest.mark.parametrize(("body", "headers"), _FAULTS, ids=_NAMES)
def test_an_unknown_key_is_401_whatever_else_is_wrong(
    client: FlaskClient, body: bytes, headers: dict[str, str], length: int
) -> None:
    response = post(client, Body(body.ljust(length)), headers)
    assert list(errors_of(response, 401)) == ["authorization"]
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_an_unknown_key_with_a_right_body_is_401(client: FlaskClient, house: House) -> None:
    house.error = InvalidKey()
    response = post(client, Body(_RIGHT))
    assert list(errors_of(response, 401)) == ["authorization"]
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.usefixtures("house")
@pytest.mark.parametrize(("body", "headers"), _FAULTS, ids=_NAMES)
@pytest.mark.parametrize("length", [0, 100_000], ids=["small", "large"])
def test_a_known_key_is_told_what_is_wrong(
    client: FlaskClient, body: bytes, headers: dict[str, str], length: int
) -> None:
    status = 415 if "Content-Type" in headers or "Content-Encoding" in headers else 400
    assert errors_of(post(client, Body(body.ljust(length)), headers), status)


@pytest.mark.usefixtures("no_rows")
@pytest.mark.parametrize(
    ("length", "is_chunked"), [(65_537, False), (9_000_000, False), (100, True)], ids=["large", "too large", "chunked"]
)
def test_a_large_body_is_not_read_for_a_strangers_key(client: FlaskClient, *, length: int, is_chunked: bool) -> None:
    body = Body(_RIGHT.ljust(length))
    assert list(errors_of(post(client, body, is_chunked=is_chunked), 401)) == ["authorization"]
    assert not body.is_read


@pytest.mark.parametrize("authorization", ["", "Bearer x", "Basic abc"])
def test_no_body_is_read_for_what_cannot_be_a_key(client: FlaskClient, authorization: str) -> None:
    body = Body(_RIGHT)
    assert list(errors_of(post(client, body, {"Authorization": authorization}), 401)) == ["authorization"]
    assert not body.is_read


@pytest.mark.parametrize(
    ("length", "is_chunked"), [(0, False), (65_536, False), (65_537, False), (0, True)],
    ids=["small", "just small", "large", "chunked"],
)  # fmt: skip
def test_a_body_of_any_length_is_read_for_a_known_key(
    client: FlaskClient, house: House, *, length: int, is_chunked: bool
) -> None:
    body = Body(_RIGHT.ljust(length))
    assert data_of(post(client, body, is_chunked=is_chunked), 202)["batch_id"] == 42
    assert body.is_read
    assert len(house.accepted) == 1
