"""`FakePoints`: a Points Issuing Service in memory, for your own tests.

It answers verify, send, batches, transactions and the organization as the service does, replays by the idempotency key,
and fails on request. It knows no other calls: for those, run the service itself.
"""

import json
import re
from collections import deque
from collections.abc import Iterable
from typing import Any

import httpx

from points_client.testing.books import Books, Refusal
from points_client.testing.faults import faults_of

__all__ = ["KEY", "URL", "FakePoints"]

KEY = "pts_dev_fake"
URL = "http://localhost"


class FakePoints(httpx.MockTransport):
    """A transport for `Points` and `AsyncPoints`: `Points(KEY, URL, transport=FakePoints(balance=1_000))`.

    Args:
        balance: points of the organization.
        users: addresses that have an account; the points of all others are held.

    Attributes:
        balance: what is left.
        transactions: all of them, as JSON, in their order, to see who was paid.
        suspended: if it is true, the organization may not issue.
        faults: what the next calls get instead of an answer, in order: an `httpx.Response`, such as
            `httpx.Response(503)`, or an exception, such as `httpx.ConnectError("away")`. These calls do nothing.
        answers_lost: how many of the next answers are lost, after the calls were done.
        queued: how many of the next sends are answered 202; they are issued at the next look.
    """

    def __init__(self, *, balance: int = 1_000_000, users: Iterable[str] = ()) -> None:
        super().__init__(self._answer)
        self._books = Books(balance, users)
        self.faults: deque[httpx.Response | Exception] = deque()
        self.answers_lost = 0
        self.queued = 0

    @property
    def balance(self) -> int:
        return self._books.balance

    @property
    def transactions(self) -> list[dict[str, Any]]:
        return [one for batch in self._books.batches.values() for one in batch["transactions"] or ()]

    @property
    def suspended(self) -> bool:
        return self._books.is_suspended

    @suspended.setter
    def suspended(self, value: bool) -> None:
        self._books.is_suspended = value

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if self.faults:
            fault = self.faults.popleft()
            if isinstance(fault, Exception):
                raise fault
            return fault
        try:
            answer = self._done(request)
        except Refusal as refusal:
            additional = None if refusal.status == 400 else {"code": refusal.code}
            answer = _envelope(refusal.status, success=False, errors=refusal.errors, additional=additional)
        if self.answers_lost:
            self.answers_lost -= 1
            raise httpx.ReadError("The answer was lost.", request=request)
        return answer

    def _done(self, request: httpx.Request) -> httpx.Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refusal(401, "invalid_key", {"authorization": ["A valid API key is required."]})
        path = request.url.path
        if request.method == "POST" and path in ("/v1/points/verify", "/v1/points/send"):
            body = json.loads(request.content)
            if faults := faults_of(body, is_send=path.endswith("send")):
                raise Refusal(400, None, faults)
            return self._send(request, body) if path.endswith("send") else self._verify(body)
        if request.method == "GET":
            return _envelope(200, data=self._read(path, request.url.params))
        raise Refusal(404, "not_found", {"path": ["FakePoints does not know this call."]})

    def _verify(self, body: dict[str, Any]) -> httpx.Response:
        verdict, additional = self._books.verify(body)
        return _envelope(200, data=verdict, additional=additional)

    def _send(self, request: httpx.Request, body: dict[str, Any]) -> httpx.Response:
        key = request.headers.get("Idempotency-Key")
        batch, existed = self._books.accept(body, key)
        about, location = {"batch_id": batch["batch_id"]}, {"Location": f"/v1/batches/{batch['batch_id']}"}
        was_issued = batch["status"] == "issued"
        is_asked_not_to_wait = request.headers.get("Prefer") == "respond-async"
        if not was_issued and (self.queued or (is_asked_not_to_wait and not existed)):
            self.queued = max(0, self.queued - 1)
            data = {**about, "status": "queued"}
            return _envelope(202, data=data, additional=about, headers=location | {"Retry-After": "1"})
        self._books.issue(batch)
        data = {name: batch[name] for name in ("transactions", "amount", "current_balance")}
        replayed = {"Idempotency-Replayed": "true"} if was_issued else {}
        return _envelope(201, data=data, additional=about, headers=location | replayed)

    def _read(self, path: str, query: httpx.QueryParams) -> dict[str, Any]:
        for batch in self._books.batches.values():
            self._books.issue(batch)
        if path == "/v1/organization":
            return self._books.organization()
        name, _, number = path.removeprefix("/v1/").partition("/")
        if name not in ("batches", "transactions") or not re.fullmatch(r"\d*", number):
            raise Refusal(404, "not_found", {"path": ["FakePoints does not know this call."]})
        if number:
            return self._books.find(name, int(number))
        filters = {field: value for field, value in query.items() if field not in ("limit", "cursor")}
        return {name: self._books.listed(name, filters), "next_cursor": None}


def _envelope(
    status: int,
    *,
    success: bool = True,
    data: dict[str, Any] | None = None,
    errors: dict[str, list[str]] | None = None,
    additional: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    about = {"version": "1.0", **(additional or {})} if success else additional
    document = {"success": success, "data": data, "errors": errors, "additional_data": about}
    return httpx.Response(status, json=document, headers={"X-Request-Id": "fake", **(headers or {})})
