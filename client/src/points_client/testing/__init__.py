"""`FakePoints` is no second service: only what the tests of a caller need, in memory.

It verifies, sends, replays by the idempotency key, lists batches and transactions, registers users, who claim what is
held for them, and refuses or is silent as it is told. **It never guesses**: what it does not have raises `NotInFake`.
For that there is the sandbox of a real service, which `make run` in its repository gives in half a minute.
"""

import re
from collections import deque
from collections.abc import Iterable
from threading import RLock
from typing import Any

import httpx

from points_client.testing.bodies import (
    AMOUNT_MAX,
    RECIPIENTS_MAX,
    NotInFake,
    Refusal,
    order_of,
    page_of,
    person_of,
)
from points_client.testing.books import Books, reserved_in

__all__ = ["KEY", "LIVE_KEY", "PLATFORM_KEY", "URL", "FakePoints", "NotInFake"]

KEY = "pts_dev_fake"
LIVE_KEY = "pts_live_fake"
PLATFORM_KEY = "pts_platform_fake"
URL = "http://localhost"
_ONE = re.compile(r"(/v1/(?:platform/)?(batches|transactions|users))/([0-9]{1,18})")
_RECIPIENTS = re.compile(r"/v1/batches/([0-9]{1,18})/recipients")
_SILENT = "Server disconnected without sending a response."
# What the reserved recipients rehearse before the organization is looked at.
_AWAY = {"rate_limited": (429, "rate_limited", "rate_limit"), "unavailable": (503, "out_of_reach", "service")}


class FakePoints(httpx.MockTransport):
    """A transport for `Points` and `AsyncPoints`: `Points(KEY, URL, transport=FakePoints(balance=1_000))`.

    Args:
        balance: points of the organization.
        users: addresses that have an account, of the sandbox unless `live`; the points of all others are held.
        live: its key is `LIVE_KEY`, and not `KEY`, that of the sandbox; and `PlatformPoints` with `PLATFORM_KEY`
            registers and finds users.

    Attributes:
        balance: what is left.
        transactions: all of them, as JSON, in their order, to see who was paid.
        suspended: if it is true, the organization may not issue.
        faults: what the next calls get instead of an answer, in order: an `httpx.Response`, such as
            `httpx.Response(503)`, or an exception, such as `httpx.ConnectError("away")`. These calls do nothing.
        answers_lost: how many of the next answers are lost, after the calls were done.
        queued: how many of the next answers about a batch still say that it is queued.

    It knows the reserved recipients of the sandbox too. Any other attribute and any other call raise `NotInFake`.
    """

    def __init__(self, *, balance: int = 1_000_000, users: Iterable[str] = (), live: bool = False) -> None:
        super().__init__(self._answer)
        self._books, self._lock, self._count = Books(balance, users, live=live), RLock(), 0
        self.faults: deque[httpx.Response | Exception] = deque()
        self.answers_lost = 0
        self.queued = 0

    def __getattr__(self, name: str) -> Any:
        raise NotInFake(f"the attribute {name}")

    @property
    def balance(self) -> int:
        return self._books.balance

    @property
    def transactions(self) -> list[dict[str, Any]]:
        return self._books.transactions()

    @property
    def suspended(self) -> bool:
        return self._books.is_suspended

    @suspended.setter
    def suspended(self, value: bool) -> None:
        self._books.is_suspended = value

    def _answer(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            if self.faults:
                fault = self.faults.popleft()
                if isinstance(fault, Exception):
                    raise fault
                # Another one, since each can be read once, and the same may stand here several times.
                return httpx.Response(fault.status_code, headers=fault.headers, content=fault.content)
            try:
                answer = self._done(request)
            except Refusal as refusal:
                answer = _refused(refusal)
            self._count += 1
            answer.headers["X-Request-Id"] = request.headers.get("X-Request-Id", f"fake-{self._count}")
            if self.answers_lost:
                self.answers_lost -= 1
                raise httpx.ReadError("The answer was lost.", request=request)
            return answer

    def _done(self, request: httpx.Request) -> httpx.Response:
        books, path = self._books, request.url.path
        self._check_key(request)
        found, its = _ONE.fullmatch(path), _RECIPIENTS.fullmatch(path)
        call = f"{request.method} {f'{found[1]}/#' if found else path}"
        list_of = "recipients" if its and request.method == "GET" else _LISTS.get(call)
        if (request.url.query and list_of is None) or "Points-Rehearse" in request.headers:
            raise NotInFake("parameters of this call")
        if call == "POST /v1/points/verify":
            data, about = books.verify(order_of(request))
            return _answered(200, data, **about)
        if call == "POST /v1/points/send":
            return self._send(request)
        if call == "GET /v1/organization":
            scheduled = {"batches": 0, "amount": 0, "next_at": None}
            limits = {"recipients": RECIPIENTS_MAX, "amount": AMOUNT_MAX, "body_bytes": 8_388_608}
            return _answered(200, books.organization(), scheduled=scheduled, limits=limits)
        if call == ("POST /v1/platform/users" if books.live else "POST /v1/sandbox/users"):
            return self._register(request)
        if list_of is not None:
            self._look()
            rows = books.recipients(int(its[1])) if its else books.rows(list_of)
            return _answered(200, page_of(list_of, request.url.params, rows))
        if found and f"GET {found[1]}" in _LISTS and request.method == "GET":
            self._look()
            return _answered(200, books.find(found[2], int(found[3])))
        raise NotInFake(f"{request.method} {path}")

    def _check_key(self, request: httpx.Request) -> None:
        key = str(request.headers.get("Authorization", "")).removeprefix("Bearer ")
        is_of_platform = request.url.path.startswith("/v1/platform/")
        if key not in (LIVE_KEY if self._books.live else KEY, PLATFORM_KEY):
            sentence = "A valid API key is required, sent as `Authorization: Bearer <key>`."
            raise Refusal(401, "invalid_key", {"authorization": [sentence]})
        if (key == PLATFORM_KEY) is not is_of_platform:
            raise Refusal(403, "wrong_key", {"authorization": ["This call takes a key of the other kind."]})
        if is_of_platform and not self._books.live:
            raise NotInFake("a platform without live=True")

    def _send(self, request: httpx.Request) -> httpx.Response:
        order, prefers = order_of(request), request.headers.get("Prefer", "wait=25")
        if not re.fullmatch(r"respond-async|wait=[0-9]+", prefers):
            raise NotInFake(f"Prefer: {prefers}")
        key, reserved = request.headers.get("Idempotency-Key"), reserved_in(order)
        for name in reserved & _AWAY.keys():
            status, code, field = _AWAY[name]
            raise Refusal(status, code, {field: ["It is rehearsed. Wait for the seconds that Retry-After names."]})
        batch, existed = self._books.accept(order, key)
        about, headers = {"batch_id": batch["batch_id"]}, {"Location": f"/v1/batches/{batch['batch_id']}"}
        if "silent" in reserved and not existed:
            raise httpx.RemoteProtocolError(_SILENT, request=request)
        was_issued = batch["status"] == "issued"
        is_left = not existed and (prefers == "respond-async" or "accepted" in reserved)
        if not was_issued and (self._is_queued() or is_left):
            return _answered(202, {**about, "status": "queued"}, headers | {"Retry-After": "1"}, **about)
        self._books.issue_all()  # In order: those before it too.
        replayed = {"Idempotency-Replayed": "true"} if was_issued else {}
        return _answered(201, self._books.outcome(batch), headers | replayed, **about)

    def _register(self, request: httpx.Request) -> httpx.Response:
        known = ("email", "first_name", "last_name", "external_id")
        person = person_of(request, known if self._books.live else known[:3])
        self._books.issue_all()
        is_new, user, claimed = self._books.register({"external_id": None, **person})
        headers = {"Location": f"{request.url.path}/{user['id']}"} if is_new and self._books.live else {}
        return _answered(201 if is_new else 200, self._books.shown(user), headers, claimed=claimed)

    def _look(self) -> None:
        """Issue what is queued, as the workers would have done by now."""
        if not self._is_queued():
            self._books.issue_all()

    def _is_queued(self) -> bool:
        self.queued -= (was_queued := self.queued > 0)
        return was_queued


_LISTS = {"GET /v1/batches": "batches", "GET /v1/transactions": "transactions", "GET /v1/platform/users": "users"}


def _answered(
    status: int, data: dict[str, Any], headers: dict[str, str] | None = None, /, **additional: object
) -> httpx.Response:
    about = {"version": "1.0", **additional}
    document = {"success": True, "data": data, "errors": None, "additional_data": about}
    return httpx.Response(status, json=document, headers=headers)


def _refused(refusal: Refusal) -> httpx.Response:
    about = None if refusal.code is None else {"code": refusal.code}
    document = {"success": False, "data": None, "errors": refusal.errors, "additional_data": about}
    headers = {"Retry-After": "2"} if refusal.status in (429, 503) else None
    return httpx.Response(refusal.status, json=document, headers=headers)
