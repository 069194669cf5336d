"""What is answered without a key: the probes, the metrics, and the description of the interface."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.calls import Organization, address, addresses, success
from tests.deadline import until
from tests.service.up import Service


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_of_a_service_that_is_well_is_200_in_the_envelope(service: Service, path: str) -> None:
    assert success(service.call("GET", path))["status"]


def test_the_metrics_count_what_was_issued_and_name_no_address_and_no_key(service: Service, acme: Organization) -> None:
    def issued() -> float:
        answer = service.call("GET", "/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert not re.search(r"@|pts_(live|dev)_", answer.text)
        found = re.findall(r'^points_issued_points_total\{mode="live"\} (\S+)$', answer.text, re.MULTILINE)
        return float(found[0]) if found else 0.0

    before = issued()
    success(acme.live.send({"recipient": address(), "amount": 1_000_000}), 201)
    until(lambda: issued() >= before + 1_000_000)


def test_every_example_of_a_body_is_taken(acme: Organization) -> None:
    key, described = acme.live, acme.service.call("GET", "/openapi.json").json()
    for path in ("/v1/points/verify", "/v1/points/send", "/v1/points/reverse/verify", "/v1/points/reverse"):
        content = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        for name, reference in content["examples"].items():
            body = described["components"]["examples"][reference["$ref"].rpartition("/")[2]]["value"]
            if "reverse" in path:
                first = success(key.send({"recipients": addresses(2), "amount": 50}), 201)["transactions"][0]["id"]
                batch_id = key.get("/v1/batches", limit=1).json()["data"]["batches"][0]["batch_id"]
                body |= {"batch": batch_id} if "batch" in body else {"transactions": [first]}
            if "send_at" in body:
                body["send_at"] = (datetime.now(UTC) + timedelta(days=1)).isoformat()
            answer = key.call("POST", path, json=body)
            assert answer.status_code in (200, 201, 202), f"{name}: {answer.text}"
