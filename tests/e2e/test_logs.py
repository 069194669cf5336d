"""The logs of all processes of the service: one id leads from the call to the drain, and no address is in any."""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import pytest

from tests.deadline import until
from tests.service.inside import Organization, Service


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
    until(lambda: len(lines(service, request_id)) == 2)
    told = {line.split("│")[0].strip().rstrip("0123456789"): line for line in lines(service, request_id)}
    assert told.keys() == {"web", "worker"}
    for part, words in {
        "web": f"info request route=/v1/points/send status=201 organization_id={caller.id} batch_id={batch_id}",
        "worker": f"info drained organization_id={caller.id} batch_ids={batch_id} refused=0 recipients=3 points=21",
    }.items():
        assert set(words.split()) <= set(told[part].split())
    assert "task_id=" in told["worker"]
    assert set(lines(service, f"batch_id={batch_id}") + lines(service, f"batch_ids={batch_id}")) == set(told.values())


def words_of(service: Service, method: str, path: str, status: int, **request: Any) -> set[str]:
    """Make a call that is answered with this status, and return the words of its line in the log."""
    name = uuid.uuid4().hex
    request["headers"] = {"X-Request-Id": name, **request.get("headers", {})}
    assert service.call(method, path, **request).status_code == status
    until(lambda: bool(lines(service, name)))
    [line] = lines(service, name)
    return set(line.split())


@pytest.mark.parametrize(
    ("method", "path", "status", "shown"),
    [
        ("GET", "/v1/batch/7?email=ada", 404, "/v1/batch/7"),
        ("GET", "/v1/users/ada@example.com/pts_live_0/%40/" + "x" * 41, 404, "/v1/users/…/…/…/…"),
        ("GET", "/" + "abc/" * 100, 404, "/" + "abc/" * 24 + "abc"),
        ("GET", "/v1/batches/999999999", 404, "/v1/batches/999999999"),
        ("PATCH", "/v1/points/send", 405, "/v1/points/send"),
    ],
)
def test_the_line_of_a_404_and_of_a_405_shows_what_was_asked_for(
    service: Service, method: str, path: str, status: int, shown: str
) -> None:
    words = words_of(service, method, path, status, key=service.organization().live)
    assert {f"status={status}", f"method={method}", f"path={shown}"} <= words


def test_the_line_of_a_401_shows_the_beginning_of_the_key_as_lists_do(service: Service) -> None:
    caller = service.organization()
    keys = service.json("keys", "list", str(caller.id))
    [key] = [key for key in keys if caller.development.startswith(key["start"])]
    service.platform("DELETE", f"organizations/{caller.id}/keys/{key['id']}")
    for sent, shown in ((caller.development, key["start"]), (None, "none"), ("nonsense", "other")):
        assert f"key_start={shown}" in words_of(service, "GET", "/v1/organization", 401, key=sent)


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
    service.account(address)
    last = f"last-{uuid.uuid4().hex}"
    service.call("GET", "/v1/organization", key=caller.live, headers={"X-Request-Id": last})
    until(lambda: bool(lines(service, last)))
    batch_id = sent.json()["additional_data"]["batch_id"]
    until(lambda: bool(lines(service, f"batch_ids={batch_id}")))
    shown = "\n".join(line for line in service.output if "│" in line)
    hashed = sha256(address.encode()).hexdigest()[:32]
    assert f"request_id={hashed}" in shown, "a caller's own id is logged, as a hash because of its @"
    assert mark not in shown
    # And whatever else this service was sent, by any test: no address, no key.
    # Of a key at most the beginning that `points keys list` shows as well.
    assert not re.search(r"@[\w-]+\.(com|org|net)|%40|pts_(live|dev)_\w{5}", shown)


def test_what_goes_wrong_has_fields_and_no_trace_and_names_nobody(service: Service) -> None:
    mark = uuid.uuid4().hex
    caller = service.organization(100)
    with _refused_by_the_database(service, f"{mark}@example.com"):
        sent = service.send(caller.live, {"recipient": f"{mark}@example.com", "amount": 1}, Prefer="respond-async")
        batch_id = sent.json()["data"]["batch_id"]
        until(lambda: bool(lines(service, "batch_postponed", f"batch_id={batch_id}")))
    [line, *_] = lines(service, "batch_postponed", f"batch_id={batch_id}")
    fields = {f"organization_id={caller.id}", "error=CheckViolation", "sqlstate=23514", "constraint=ck_nobody"}
    assert fields <= set(line.split())
    assert lines(service, "drain_failed", f"organization_id={caller.id}")
    until(lambda: _status(service, caller, batch_id) == "issued")
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


def test_mail_is_in_the_log_of_points_up_without_an_address_and_without_a_link(service: Service) -> None:
    acme = service.organization(100)
    service.command("organizations", "approval", str(acme.id), "--above", "10", "--of", "all")
    email = f"{uuid.uuid4().hex}@example.com"
    member = (email, "Bo", "", "--organization", str(acme.id), "--role", "approver")
    member_id = service.json("members", "create", *member)["id"]
    batch_id = service.send(acme.live, {"recipient": email, "amount": 11}).json()["data"]["batch_id"]
    name, awaits = f"member_id={member_id}", f"batch {batch_id} awaits your approval"
    until(lambda: len(lines(service, "mail_printed", name)) == 2)
    invited, told = lines(service, "mail_printed", name)
    assert "subject=Acme: you are invited text=Hello Bo," in invited
    assert f"{service.url}/console/link/*** " in invited
    assert f"subject=Acme: {awaits} text=Hello Bo," in told
    assert f"{service.url}/console/live/batches/{batch_id} " in told
    assert "@" not in invited + told
