"""The logs of all processes of the service: one id leads from the call to the drain, and no address is in any."""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from tests.deadline import until
from tests.e2e.conftest import Organization, Service

SEEN_WITHIN_S = 30


def lines(service: Service, *words: str) -> list[str]:
    """Return the lines of the parts, as `points up` shows them, that hold all of these words."""
    patterns = [re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])") for word in words]
    return [line for line in service.output if "│" in line and all(pattern.search(line) for pattern in patterns)]


def test_one_id_tells_the_story_of_a_send(service: Service) -> None:
    caller = service.organization(100)
    request_id = f"story-{uuid.uuid4().hex}"
    body = {"recipients": [f"{uuid.uuid4().hex}@example.com" for _ in range(3)], "amount": 7}
    answer = service.send(caller.live, body, X_Request_Id=request_id)
    assert answer.headers["X-Request-Id"] == request_id
    batch_id = answer.json()["additional_data"]["batch_id"]
    until(lambda: len(lines(service, request_id)) == 2, within_s=SEEN_WITHIN_S)
    told = {line.split("│")[0].strip().rstrip("0123456789"): line for line in lines(service, request_id)}
    assert told.keys() == {"web", "worker"}
    for part, words in {
        "web": f"info request route=/v1/points/send status=201 organization_id={caller.id} batch_id={batch_id}",
        "worker": f"info drained organization_id={caller.id} batch_ids={batch_id} refused=0 recipients=3 points=21",
    }.items():
        assert set(words.split()) <= set(told[part].split())
    assert "task_id=" in told["worker"]
    assert set(lines(service, f"batch_id={batch_id}") + lines(service, f"batch_ids={batch_id}")) == set(told.values())


def test_no_address_no_key_and_no_body_is_in_any_line(service: Service) -> None:
    mark = uuid.uuid4().hex
    caller = service.organization(100)
    address = f"{mark}@example.com"
    sent = service.send(caller.live, {"recipient": address, "amount": 1, "label": mark}, X_Request_Id=address)
    assert sent.status_code == 201
    assert sent.headers["X-Request-Id"] == address
    service.verify(caller.live, {"recipient": address, "amount": 1})
    service.send(caller.live, {"recipients": [address, address, f"{mark}@"], "amount": 0})
    service.call("POST", "/v1/points/send", key=caller.live, content=f'{{"recipient": "{address}"')
    service.call("GET", f"/v1/transactions?email={address}", key=caller.live)
    service.call("GET", f"/v1/{address}", key=f"pts_live_{mark}")
    service.register(address)
    last = f"last-{uuid.uuid4().hex}"
    service.call("GET", "/v1/organization", key=caller.live, headers={"X-Request-Id": last})
    until(lambda: bool(lines(service, last)), within_s=SEEN_WITHIN_S)
    batch_id = sent.json()["additional_data"]["batch_id"]
    until(lambda: bool(lines(service, f"batch_ids={batch_id}")), within_s=SEEN_WITHIN_S)
    shown = "\n".join(line for line in service.output if "│" in line)
    hashed = sha256(address.encode()).hexdigest()[:32]
    assert f"request_id={hashed}" in shown, "a caller's own id is logged, as a hash because of its @"
    assert mark not in shown
    # And whatever else this service was sent, by any test: no address, no key.
    assert not re.search(r"@[\w-]+\.(com|org|net)|%40|pts_(live|dev)_\w", shown)


def test_what_goes_wrong_has_fields_and_no_trace_and_names_nobody(service: Service) -> None:
    mark = uuid.uuid4().hex
    caller = service.organization(100)
    with _refused_by_the_database(service, f"{mark}@example.com"):
        sent = service.send(caller.live, {"recipient": f"{mark}@example.com", "amount": 1}, Prefer="respond-async")
        batch_id = sent.json()["data"]["batch_id"]
        until(lambda: bool(lines(service, "batch_postponed", f"batch_id={batch_id}")), within_s=SEEN_WITHIN_S)
    [line, *_] = lines(service, "batch_postponed", f"batch_id={batch_id}")
    fields = {f"organization_id={caller.id}", "error=CheckViolation", "sqlstate=23514", "constraint=ck_nobody"}
    assert fields <= set(line.split())
    assert lines(service, "drain_failed", f"organization_id={caller.id}")
    until(lambda: _status(service, caller, batch_id) == "issued", within_s=SEEN_WITHIN_S)
    shown = "\n".join(line for line in service.output if "│" in line)
    assert mark not in shown
    assert "Traceback" not in shown
    assert not re.search(r'^.*│\s+File "', shown, re.MULTILINE)


@contextmanager
def _refused_by_the_database(service: Service, address: str) -> Iterator[None]:
    """Have PostgreSQL refuse each transaction for an address."""
    with service.connection() as connection:
        refuse = f"ADD CONSTRAINT ck_nobody CHECK (email <> '{address}') NOT VALID"
        connection.exec_driver_sql(f"ALTER TABLE transactions {refuse}")
    try:
        yield
    finally:
        with service.connection() as connection:
            connection.exec_driver_sql("ALTER TABLE transactions DROP CONSTRAINT ck_nobody")


def _status(service: Service, caller: Organization, batch_id: int) -> str:
    return str(service.call("GET", f"/v1/batches/{batch_id}", key=caller.live).json()["data"]["status"])
