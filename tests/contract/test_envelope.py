"""The envelope and the headers of every answer; all other tests check them on their answers too."""

import re

import pytest

from tests.contract.calls import Organization, address, refusal, success
from tests.contract.service import Service
from tests.e2e.raw_http import exchange

_HEAD = b"POST /v1/points/send HTTP/1.1\r\nHost: x\r\n"
_NO_REQUEST = {
    "no HTTP": b"NONSENSE\r\n\r\n",
    "no header": b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
    "a length below 0": _HEAD + b"Content-Length: -1\r\n\r\n",
    "two framings": _HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a long path": b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 70_000 + b"\r\n\r\n",
}


def test_a_400_is_sent_chunked_with_every_header_of_the_interface(acme: Organization) -> None:
    answer = acme.live.send({})
    refusal(answer, 400, "amount", "recipient", "recipients")
    given = ["Connection", "Date", "Server", "Cache-Control", "Vary", "Transfer-Encoding", "Content-Type", "Via"]
    assert all(answer.headers.get(name) for name in given)
    assert "Content-Length" not in answer.headers


@pytest.mark.parametrize("accepts", ["text/html", "application/xml", "*/*", "application/json;q=0", ""])
def test_json_is_answered_whatever_the_caller_accepts(acme: Organization, accepts: str) -> None:
    success(acme.live.call("GET", "/v1/organization", headers={"Accept": accepts}))


def test_a_sane_request_id_comes_back_and_every_other_call_gets_one_of_its_own(service: Service) -> None:
    def given(*sent: bytes) -> str:
        headers = [(b"X-Request-Id", one) for one in sent]
        return service.request("GET", "/healthz", headers=headers).headers["X-Request-Id"]

    assert given(b"order-123_a.b") == "order-123_a.b"
    odd = [b"a" * 200, b"a, b", b"<b>", b"a;b", "é".encode(), b'"a"']
    made = [*(given(one) for one in odd), *(given() for _ in range(20))]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[0-9A-Za-z-]{16,}", one) for one in made)


@pytest.mark.parametrize("sent", _NO_REQUEST.values(), ids=_NO_REQUEST)
def test_bytes_that_are_no_request_are_a_400_in_the_envelope_and_one_answer(service: Service, sent: bytes) -> None:
    answer = exchange(service.port, sent)
    assert (answer.status, answer.rest) == (400, b"")
    assert answer.body.startswith(b'{"success":false,"data":null,"errors":{"request":["')
    assert (answer.headers["Transfer-Encoding"], answer.headers["Via"]) == ("chunked", "1.1 points")


def test_an_error_other_than_400_has_a_code_that_is_described(service: Service, acme: Organization) -> None:
    live, body = acme.live, {"recipient": address(), "amount": 1}
    success(live.send(body, Idempotency_Key="codes"), 201)
    answers = {
        "invalid_key": service.call("GET", "/v1/organization"),
        "development_key_required": live.call("POST", "/v1/sandbox/reset"),
        "not_found": live.get("/v1/batches/9999999999"),
        "method_not_allowed": live.get("/v1/points/send"),
        "body_too_large": live.send({"label": "a" * 8_388_608}),
        "unsupported_media_type": live.call("POST", "/v1/points/send", content=b"1"),
        "idempotency_key_reused": live.send(body | {"amount": 2}, Idempotency_Key="codes"),
    }
    for verb, code in (("suspend", "organization_suspended"), ("disable", "organization_disabled")):
        with acme.stopped(verb):
            answers[code] = live.send(body)
    for code, answer in answers.items():
        refusal(answer, answer.status_code, *answer.json()["errors"])
        assert answer.json()["additional_data"] == {"code": code}
    described = service.call("GET", "/openapi.json").json()["components"]["schemas"]["Problem"]["properties"]["code"]
    assert set(described["enum"]) >= answers.keys() | {"rate_limited", "out_of_reach", "internal_error"}
