"""What is refused, over HTTP: each status has its envelope and its headers, and nothing is written."""

import contextlib
import http.client
import json
import socket
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Service
from tests.e2e.raw_http import exchange

_BODY = {"recipient": "a@example.com", "amount": 1}


def _assert_error(answer: httpx.Response, status: int, *fields: str) -> None:
    assert answer.status_code == status
    document = answer.json()
    assert list(document) == ["success", "data", "errors", "additional_data"]
    assert document["success"] is False
    assert document["data"] is None
    assert (document["additional_data"] is None) is (status == 400)
    assert status == 400 or list(document["additional_data"]) == ["code"]
    assert sorted(document["errors"]) == sorted(fields)
    assert all(
        sentences and all(isinstance(line, str) for line in sentences) for sentences in document["errors"].values()
    )
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store, private"
    assert answer.headers["Vary"] == "Accept, Authorization"
    assert answer.headers["X-Request-Id"]


def test_an_empty_body_names_all_three_fields_and_carries_the_headers_of_the_interface(service: Service) -> None:
    caller = service.organization(10)
    answer = service.send(caller.live, {})
    _assert_error(answer, 400, "amount", "recipient", "recipients")
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert answer.headers["Via"] == "1.1 points"
    assert answer.headers["Connection"]
    assert answer.headers["Date"]
    assert not any(character.isdigit() for character in answer.headers["Server"])


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer two words",
        "Bearer nonsense",
        "Basic cG9pbnRz",
        "Bearer pts_live_" + "0" * 49,
        "Bearer pts_live_" + "é" * 49,
    ],
)
def test_a_missing_malformed_or_unknown_key_is_401_in_the_same_words(
    service: Service, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization.encode()}
    answer = service.call("POST", "/v1/points/send", json=_BODY, headers=headers)
    _assert_error(answer, 401, "authorization")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json() == service.call("GET", "/v1/organization").json()


def test_a_revoked_key_is_401_at_once_and_the_other_key_still_works(service: Service) -> None:
    caller = service.organization(10)
    keys = service.points_json("keys", "list", str(caller.id))
    live_id = next(key["id"] for key in keys if not key["sandbox"])
    assert service.call("GET", "/v1/organization", key=caller.live).status_code == 200
    service.points("keys", "revoke", str(live_id))
    _assert_error(service.call("GET", "/v1/organization", key=caller.live), 401, "authorization")
    assert service.call("GET", "/v1/organization", key=caller.development).status_code == 200


@pytest.mark.parametrize("flag", ["disable", "suspend"])
def test_an_organization_that_may_not_issue_gets_403_and_can_still_read(service: Service, flag: str) -> None:
    caller = service.organization(10)
    batch_id = service.send(caller.live, _BODY).json()["additional_data"]["batch_id"]
    service.points("organizations", flag, str(caller.id))
    _assert_error(service.send(caller.live, _BODY), 403, "organization")
    assert service.balance(caller.live) == 9
    assert service.call("GET", f"/v1/batches/{batch_id}", key=caller.live).status_code == 200


def test_another_organizations_or_modes_batch_is_404_like_one_that_does_not_exist(service: Service) -> None:
    caller, stranger = service.organization(10), service.organization(10)
    batch_id = service.send(caller.live, _BODY).json()["additional_data"]["batch_id"]
    for key in (stranger.live, caller.development):
        _assert_error(service.call("GET", f"/v1/batches/{batch_id}", key=key), 404, "batch")
    for number in ("0", "999999999", "9223372036854775808", "1" * 400):
        _assert_error(service.call("GET", f"/v1/batches/{number}", key=caller.live), 404, "batch")


@pytest.mark.parametrize(
    ("method", "path", "status", "field"),
    [
        ("GET", "/v1/nothing", 404, "path"),
        ("GET", "/v1/batches/one", 404, "path"),
        ("POST", "/v1/points/send/", 404, "path"),
        ("GET", "/v1/points/send", 405, "method"),
        ("DELETE", "/v1/organization", 405, "method"),
        ("OPTIONS", "/v1/points/verify", 405, "method"),
    ],
)
def test_a_wrong_path_or_method_is_answered_in_the_envelope(
    service: Service, method: str, path: str, status: int, field: str
) -> None:
    answer = service.call(method, path)
    _assert_error(answer, status, field)
    assert (status == 405) == ("Allow" in answer.headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {},
    ],
)
def test_a_body_of_another_type_is_415(service: Service, headers: dict[str, str]) -> None:
    caller = service.organization(10)
    answer = service.call("POST", "/v1/points/send", key=caller.live, content=b'{"amount": 1}', headers=headers)
    _assert_error(answer, 415, "content_type")


def test_a_charset_parameter_is_fine(service: Service) -> None:
    caller = service.organization(10)
    headers = {"Content-Type": "application/json; charset=utf-8"}
    body = b'{"recipient": "a@example.com", "amount": 1}'
    assert service.call("POST", "/v1/points/send", key=caller.live, content=body, headers=headers).status_code == 201


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_413_with_a_length_or_without(service: Service, chunked: bool) -> None:
    caller = service.organization(10)
    body = b'{"recipient": "a@example.com", "amount": 1}' + b" " * 8_388_608
    content: Any = iter([body[:1_000_000], body[1_000_000:]]) if chunked else body
    headers = {"Content-Type": "application/json"}
    answer = service.call("POST", "/v1/points/send", key=caller.live, content=content, headers=headers)
    _assert_error(answer, 413, "body")
    assert service.balance(caller.live) == 10


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


def test_a_sane_request_id_comes_back_and_another_is_replaced(service: Service) -> None:
    assert service.call("GET", "/healthz", headers={"X-Request-Id": "abc-123"}).headers["X-Request-Id"] == "abc-123"
    odd = service.call("GET", "/healthz", headers={"X-Request-Id": "a" * 200}).headers["X-Request-Id"]
    assert odd
    assert odd != "a" * 200


def test_json_is_answered_whatever_the_caller_accepts(service: Service) -> None:
    answer = service.call("GET", "/healthz", headers={"Accept": "text/html"})
    assert answer.headers["Content-Type"] == "application/json"
