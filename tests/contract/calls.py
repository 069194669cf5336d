"""Who calls, and what holds for every answer: the envelope, its headers, and that a refusal has changed nothing.

They do not use our client: what it would repeat or leave out is what is tested here.
"""

import contextlib
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import httpx

from tests.contract.described import is_as_described
from tests.service.up import Service

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")

# The keys that the interface document gives; an answer may hold more.
TRANSACTION = {"id", "organization", "recipient", "email", "amount", "debited", "credited", "allocated"}
TRANSACTION |= {"sender", "label", "sandbox", "created_at"}
ORGANIZATION = {"id", "name", "is_disabled", "is_suspended", "balance", "last_refill", "created_at"}

# Debited, credited and allocated of a transaction.
PAID, HELD, UNPAID = (True, True, True), (True, False, False), (False, False, False)


def address() -> str:
    """Return an address that no other test uses: users belong to no organization."""
    return f"{uuid.uuid4().hex}@example.com"


def addresses(number: int) -> list[str]:
    return [address() for _ in range(number)]


@dataclass(frozen=True)
class Key:
    """A caller with a key."""

    service: Service
    text: str

    def call(self, method: str, path: str, **request: Any) -> httpx.Response:
        return self.service.call(method, path, key=self.text, **request)

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.call("GET", path, params=query or None)

    def verify(self, body: Mapping[str, Any]) -> httpx.Response:
        return self.call("POST", "/v1/points/verify", json=body)

    def send(self, body: Mapping[str, Any], **headers: str) -> httpx.Response:
        """Send; `Idempotency_Key="x"` is the header of that name."""
        dashed = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", "/v1/points/send", json=body, headers=dashed)

    def queue(self, body: Mapping[str, Any], **headers: str) -> int:
        """Send without waiting and return the id of the batch."""
        answer = self.send(body, Prefer="respond-async", **headers)
        assert answer.status_code == 202, answer.text
        return int(answer.json()["data"]["batch_id"])

    def batch(self, batch_id: int) -> dict[str, Any]:
        answer = self.get(f"/v1/batches/{batch_id}")
        assert answer.status_code == 200, answer.text
        batch: dict[str, Any] = answer.json()["data"]
        return batch

    def cancel(self, batch_id: int) -> httpx.Response:
        return self.call("POST", f"/v1/batches/{batch_id}/cancel")

    def move(self, batch_id: int, body: Any) -> httpx.Response:
        return self.call("PATCH", f"/v1/batches/{batch_id}", json=body)

    def approve(self, batch_id: int) -> httpx.Response:
        return self.call("POST", f"/v1/batches/{batch_id}/approve")

    def reject(self, batch_id: int, body: Any = None) -> httpx.Response:
        return self.call("POST", f"/v1/batches/{batch_id}/reject", json={"reason": "Typo"} if body is None else body)

    def add_user(self, email: str) -> dict[str, Any]:
        """Register a user of the key's mode and return it."""
        if not self.text.startswith("pts_dev_"):
            return self.service.register(email)
        body = {"email": email, "first_name": "Ada", "last_name": "Lovelace"}
        user: dict[str, Any] = success(self.call("POST", "/v1/sandbox/users", json=body), 201)
        return user

    def set_clock(self, now: datetime) -> httpx.Response:
        """Set the time of the sandbox."""
        return self.call("POST", "/v1/sandbox/clock", json={"now": now.isoformat()})

    def go_to_noon(self, in_days: int) -> datetime:
        """Set the time of the sandbox to a noon to come, so that no day ends meanwhile."""
        noon = (datetime.now(UTC) + timedelta(days=in_days)).replace(hour=12, minute=0, second=0, microsecond=0)
        success(self.set_clock(noon))
        return noon

    @property
    def used_today(self) -> int:
        """What a key with a daily limit has used today, as verify tells it."""
        verdict = success(self.verify({"recipient": address(), "amount": 10**9}))
        assert verdict["validated"] is False
        found = re.search("it has used ([0-9]+)", verdict["error"])
        assert found is not None, verdict["error"]
        return int(found[1])

    def is_issued(self, batch_id: int) -> bool:
        return bool(self.batch(batch_id)["status"] == "issued")

    def listed(self, name: str, **query: Any) -> list[dict[str, Any]]:
        """Return all rows of a list, such as `batches`."""
        return [row for page in self.pages(name, **query) for row in page]

    def pages(self, name: str, **query: Any) -> Iterator[list[dict[str, Any]]]:
        while True:
            answer = self.get(f"/v1/{name}", **query)
            assert answer.status_code == 200, answer.text
            data = answer.json()["data"]
            rows = name.rpartition("/")[2]
            assert set(data) == {rows, "next_cursor"}
            yield data[rows]
            if data["next_cursor"] is None:
                return
            query["cursor"] = data["next_cursor"]

    @property
    def balance(self) -> int:
        return int(self.get("/v1/organization").json()["data"]["balance"])


@dataclass(frozen=True)
class Organization:
    """An organization, with a key for each mode, made when it is first asked for."""

    service: Service
    id: int

    @cached_property
    def live(self) -> Key:
        return self.new_key()

    @cached_property
    def development(self) -> Key:
        return self.new_key(sandbox=True)

    def new_key(self, **bounds: Any) -> Key:
        return self.new_key_with_id(**bounds)[0]

    def new_key_with_id(self, **bounds: Any) -> tuple[Key, int]:
        made = self.service.platform("POST", f"organizations/{self.id}/keys", name=None, **bounds)
        return Key(self.service, made["key"]), made["id"]

    def revoke(self, key_id: int) -> None:
        self.service.platform("DELETE", f"organizations/{self.id}/keys/{key_id}")

    def change(self, **changes: Any) -> None:
        self.service.platform("PATCH", f"organizations/{self.id}", **changes)

    def refill(self, amount: int) -> None:
        self.service.platform("POST", f"organizations/{self.id}/refills", amount=amount)

    @contextlib.contextmanager
    def stopped(self, verb: str = "suspend") -> Iterator[None]:
        """Suspend or disable it, until the block ends."""
        flag = {"suspend": "is_suspended", "disable": "is_disabled"}[verb]
        self.change(**{flag: True})
        try:
            yield
        finally:
            self.change(**{flag: False})


def organization(service: Service, balance: int = 0, **more: Any) -> Organization:
    """Make an organization with an opening balance."""
    made = service.platform("POST", "organizations", name="Acme", balance=balance, **more)
    return Organization(service, made["id"])


def flags(transactions: list[dict[str, Any]]) -> list[tuple[bool, bool, bool]]:
    return [(one["debited"], one["credited"], one["allocated"]) for one in transactions]


def _document(answer: httpx.Response) -> dict[str, Any]:
    """Check what every answer has, and return its body."""
    headers = answer.headers
    assert headers["Content-Type"] == "application/json"
    assert headers["Cache-Control"] == "no-store, private"
    assert headers["Vary"] == "Accept, Authorization"
    assert headers["Via"] == "1.1 points"
    assert not re.search(r"\d", headers["Server"]), "it tells its version"
    assert len(headers.get_list("X-Request-Id")) == 1
    document: dict[str, Any] = answer.json()
    assert set(document) == {"success", "data", "errors", "additional_data"}
    is_as_described(answer)
    return document


def success(answer: httpx.Response, status: int = 200) -> Any:
    """Require a success, and return its `data`."""
    assert answer.status_code == status, answer.text
    document = _document(answer)
    assert (document["success"], document["errors"]) == (True, None)
    assert re.fullmatch(r"\d+\.\d+", document["additional_data"]["version"])
    return document["data"]


def refusal(answer: httpx.Response, status: int, *fields: str) -> dict[str, list[str]]:
    """Require an error on exactly these fields, and return its sentences by field."""
    assert answer.status_code == status, answer.text
    document = _document(answer)
    assert (document["success"], document["data"]) == (False, None)
    if status != 400:
        assert set(document["additional_data"]) == {"code"}
        assert re.fullmatch(r"[a-z_]+", document["additional_data"]["code"])
    else:
        assert document["additional_data"] is None
        assert answer.headers["Transfer-Encoding"] == "chunked"
    errors: dict[str, list[str]] = document["errors"]
    assert set(errors) == set(fields)
    assert all(lines and all(line.strip() for line in lines) for lines in errors.values())
    assert "Traceback" not in answer.text
    return errors


@contextlib.contextmanager
def nothing_changes(key: Key) -> Iterator[None]:
    """Require that the caller's balance and batches are the same after the block as before."""
    before = key.balance, key.get("/v1/batches", limit=1).json()["data"]
    yield
    assert (key.balance, key.get("/v1/batches", limit=1).json()["data"]) == before
