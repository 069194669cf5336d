"""Paths and methods: what is nowhere is 404, what is not taken is 405, all in the envelope."""

import pytest

from tests.contract.calls import Organization, refusal
from tests.contract.service import Service
from tests.e2e.raw_http import exchange

_NOWHERE = "/ /v1 /v1/ /v2/organization /v1/nothing /v1/points/send/ /v1/Organization /v1/organization.json /.env"
_NOWHERE += " /v1/batches/one /v1/batches/-1 /v1/batches/1.0 /v1/transactions/1e3 /v1/batches/%D9%A3 /%2e%2e/etc/passwd"
_POSTED = ("/v1/points/verify", "/v1/points/send", "/v1/sandbox/reset")
_READ = "/v1/organization /v1/batches /v1/batches/1 /v1/transactions /v1/transactions/1"
_READ += " /healthz /readyz /metrics /openapi.json /docs"


@pytest.mark.parametrize("path", _NOWHERE.split())
def test_what_is_not_there_is_404_with_a_key_and_without(service: Service, acme: Organization, path: str) -> None:
    refusal(service.call("GET", path), 404, "path")
    refusal(acme.live.get(path), 404, "path")


@pytest.mark.parametrize(
    ("path", "allowed"), [*((path, "POST") for path in _POSTED), *((path, "GET") for path in _READ.split())]
)
def test_a_method_that_is_not_taken_is_405_and_names_those_that_are(
    acme: Organization, path: str, allowed: str
) -> None:
    for method in {"GET", "POST", "PUT", "DELETE", "OPTIONS", "BREW"} - {allowed}:
        answer = acme.live.call(method, path)
        refusal(answer, 405, "method")
        assert allowed in answer.headers["Allow"].split(", ")


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/v1/points/send"])
def test_a_head_is_answered_without_a_body(service: Service, path: str) -> None:
    answer = exchange(service.port, f"HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert answer.status in (200, 404, 405)
    assert (answer.body, answer.rest) == (b"", b"")
