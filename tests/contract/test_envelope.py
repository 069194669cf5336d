"""The envelope and the headers of every answer, and addresses as they are shown."""

import uuid

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
    assert set(described["x-extensible-enum"]) >= answers.keys() | {"rate_limited", "out_of_reach", "internal_error"}


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ("ann@example.com", "ANN@Example.COM"),
        ("ann@example.com", "\tann@example.com \n"),
        ("jörg@example.com", "JO\u0308RG@example.com"),
        ("ann@bücher.example", "ann@xn--bcher-kva.example"),
    ],
)
def test_two_spellings_of_an_address_are_one_recipient(acme: Organization, one: str, same: str) -> None:
    refusal(acme.live.verify({"recipients": [one, same], "amount": 1}), 400, "recipients.1")


def test_no_dot_and_no_plus_is_folded(acme: Organization) -> None:
    emails = ["annbee@example.com", "ann.bee@example.com", "annbee+1@example.com"]
    success(acme.live.verify({"recipients": emails, "amount": 1}))


def test_an_account_is_found_by_any_spelling_and_the_answer_shows_the_address_as_sent(acme: Organization) -> None:
    mark = uuid.uuid4().hex
    user = acme.service.register(f"J\u00f6rg.{mark}@B\u00fccher.example")
    sent = f"JO\u0308RG.{mark.upper()}@xn--bcher-kva.example"
    [transaction] = success(acme.live.send({"recipient": f" {sent} ", "amount": 1}), 201)["transactions"]
    assert transaction["email"] == sent
    assert transaction["recipient"]["id"] == user["id"]
