"""A user is erased: no table, no statistics of PostgreSQL, not Redis, no file and no page has the address any more."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import redis

from app.recipient_files.writing import workbook_of
from tests.contract.calls import address, organization, refusal, success
from tests.contract.platform import platform
from tests.integration.needles import tables_with
from tests.service.inside import Service


@contextmanager
def _at_the_console(service: Service, organization_id: int) -> Iterator[httpx.Client]:
    """Yield the browser of a member who has signed in by the link of an invitation."""
    member = ("members", "create", address(), "Ann", "Sender", "--organization", str(organization_id))
    link = service.json(*member, "--role", "sender")["link"]
    with httpx.Client(base_url=service.url, follow_redirects=True, timeout=60, trust_env=False) as browser:
        password = "correct horse battery"
        page = _submitted(browser, link, password=password, again=password)
        assert page.status_code == 200, page.text
        yield browser


def _submitted(
    browser: httpx.Client, path: str, file: tuple[str, bytes] | None = None, **fields: str
) -> httpx.Response:
    hidden = dict(re.findall(r'name="(csrf_token|seen|form_id)"[^>]* value="([^"]*)"', browser.get(path).text))
    return browser.post(path, data=hidden | fields, files=None if file is None else {"file": file})


def _in_redis(url: str) -> str:
    """Return all that Redis holds, as text."""
    readers = {"hash": "HGETALL", "list": "LRANGE", "set": "SMEMBERS", "zset": "ZRANGE", "stream": "XRANGE"}
    ends: dict[str, tuple[Any, ...]] = {"list": (0, -1), "zset": (0, -1), "stream": ("-", "+")}
    said = []
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter():
            kind = client.execute_command("TYPE", key).decode()
            said.append((key, client.execute_command(readers.get(kind, "GET"), key, *ends.get(kind, ()))))
    return repr(said).lower()


def test_no_call_leaves_the_address_anywhere(service: Service) -> None:
    acme, ours = organization(service, 1_000), platform(service)
    email, other = address(), address()
    shown, tomorrow = email.upper(), (datetime.now(UTC) + timedelta(days=1)).isoformat()
    item = {"email": shown, "amount": 2, "reference": "r"}
    success(acme.live.verify({"recipient": shown, "amount": 1}))
    held = success(acme.live.send({"recipients": [other, shown], "amount": 1}, Idempotency_Key="a"), 201)
    user = ours.registered(shown, "Mary", "Jackson")
    success(ours.bulk([{"email": shown, "first_name": "Mary", "last_name": "Jackson"}]))
    refusal(ours.register(shown, "Another"), 409, "email")
    refusal(ours.change(ours.registered(other)["id"], email=shown), 409, "email")
    scheduled = success(acme.live.send({"items": [item], "send_at": tomorrow}), 202)["batch_id"]
    queued = acme.live.queue({"items": [item, {"email": other, "amount": 3}]})
    taken = {"transactions": [held["transactions"][1]["id"]], "reason": "x"}
    success(acme.live.call("POST", "/v1/points/reverse", json=taken), 201)
    success(acme.development.send({"recipient": shown, "amount": 1}), 201)
    names = {"email": shown, "first_name": "Mary", "last_name": "Jackson"}
    success(acme.development.call("POST", "/v1/sandbox/users", json=names), 201)
    for key in (acme.live, acme.development):
        for name in ("transactions", "batches"):
            success(key.get(f"/v1/{name}", email=shown))
        key.get(f"/v1/{shown}")
    ours.get("/v1/platform/users", email=shown)
    service.json("users", "show", shown)
    acme.live.batch(queued)
    with _at_the_console(service, acme.id) as browser:
        lists = [f"email,amount\n{line}\n" for line in (f"{shown},1\n{other},1", f"{other},1\n{shown},none")]
        files = [(f"{shown}.csv", text.encode()) for text in lists]
        files.append((f"{shown}.xlsx", workbook_of(["email", "amount", "note"], [[other, 1, shown], [shown, 1, ""]])))
        for file in files:
            page = _submitted(browser, "/console/live/send", file)
            path = page.url.path
            assert _submitted(browser, f"{path}/confirm", again="yes").url.path == f"{path}/outcome", page.text
        for file in files:
            assert _submitted(browser, "/console/live/send", file).status_code == 200
        with service.connection() as connection:
            connection.exec_driver_sql("ANALYZE users, former_addresses, transactions, batches, upload_parts, uploads")
            before = tables_with([email], connection)
        assert {line.partition(":")[0] for line in before} >= {"users", "transactions", "batches", "uploads"}
        success(ours.call("POST", f"/v1/platform/users/{user['id']}/erase"))
        with service.connection() as connection:
            assert tables_with([email], connection) == []
        assert email not in _in_redis(service.json("status")["redis_url"])
        written = [path for path in service.data_dir.rglob("*") if path.is_file() and "postgres" not in str(path)]
        assert [path for path in written if email.encode() in path.read_bytes().lower()] == []
        assert not any(email in line.lower() for line in service.output)
        assert email not in browser.get("/console/live/lists").text.lower()
    assert acme.live.batch(scheduled)["status"] == "scheduled"
    service.command("audit")
