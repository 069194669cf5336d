"""The envelope and the headers of every answer; all other tests check them on their answers too."""

import pytest

from tests.contract.calls import Organization, address, refusal, success
from tests.service.up import Service


def test_a_400_is_sent_chunked_with_every_header_of_the_interface(acme: Organization) -> None:
    answer = acme.live.send({})
    refusal(answer, 400, "amount", "recipient", "recipients")
    given = ["Connection", "Date", "Server", "Cache-Control", "Vary", "Transfer-Encoding", "Content-Type", "Via"]
    assert all(answer.headers.get(name) for name in given)
    assert "Content-Length" not in answer.headers


@pytest.mark.parametrize("accepts", ["text/html", "application/xml", "*/*", "application/json;q=0", ""])
def test_json_is_answered_whatever_the_caller_accepts(acme: Organization, accepts: str) -> None:
    success(acme.live.call("GET", "/v1/organization", headers={"Accept": accepts}))


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
