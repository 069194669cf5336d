"""`FakePoints`: a Points Issuing Service in memory, for your own tests.

It answers verify, sent-before, send, batches, transactions, requests, the organization, its statement and the calls of
the sandbox as the service does, replays by the idempotency key, knows the reserved recipients, and fails on request. To
the platform it answers the calls about users, who claim what is held for them, and about organizations and refills.
**It never guesses**: what it does not know raises `NotInFake`; for that, run the service itself.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import httpx

from points_client.testing import rehearsing
from points_client.testing.accounts import Refusal
from points_client.testing.answering import body_of, envelope, idempotency_key_of
from points_client.testing.books import Books, said
from points_client.testing.faults import RECIPIENTS_MAX, faults_of, items_of
from points_client.testing.fields import AMOUNT_MAX, NotInFake
from points_client.testing.lists import Asked, asked_for
from points_client.testing.platform import Platform
from points_client.testing.request_log import RequestLog
from points_client.testing.sent_before import sent_before
from points_client.testing.statement import statement

__all__ = ["KEY", "LIVE_KEY", "PLATFORM_KEY", "URL", "FakePoints", "NotInFake"]

KEY = "pts_dev_fake"
LIVE_KEY = "pts_live_fake"
PLATFORM_KEY = "pts_platform_fake"
URL = "http://localhost"


class FakePoints(httpx.MockTransport):
    """A transport for `Points` and `AsyncPoints`: `Points(KEY, URL, transport=FakePoints(balance=1_000))`.

    And for `PlatformPoints` with `PLATFORM_KEY`.

    Args:
        balance: points of the organization.
        users: addresses that have an account; the points of all others are held.
        live: its key is `LIVE_KEY`, and not `KEY`, that of the sandbox: then the users of the platform have the points
            that are sent to them, and claim what is held.

    Attributes:
        balance: what is left.
        transactions: all of them, as JSON, in their order, to see who was paid.
        suspended: if it is true, the organization may not issue.
        faults: what the next calls get instead of an answer, in order: an `httpx.Response`, such as
            `httpx.Response(503)`, or an exception, such as `httpx.ConnectError("away")`. These calls do nothing.
        answers_lost: how many of the next answers are lost, after the calls were done.
        queued: how many of the next answers about a batch still say that it is queued.
    """

    def __init__(self, *, balance: int = 1_000_000, users: Iterable[str] = (), live: bool = False) -> None:
        super().__init__(self._answer)
        self._key = LIVE_KEY if live else KEY
        self._books = Books(balance, users, live=live)
        self._platform = Platform(self._books)
        self._requests = RequestLog()
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
            waits = {"Retry-After": "2"} if refusal.status in (429, 503) else {}
            answer = envelope(
                refusal.status, success=False, errors=refusal.errors, additional=additional, headers=waits
            )
        self._requests.note(request, answer, is_listed=answer.status_code != 401 and _key_of(request) == self._key)
        if self.answers_lost:
            self.answers_lost -= 1
            raise httpx.ReadError("The answer was lost.", request=request)
        return answer

    def _done(self, request: httpx.Request) -> httpx.Response:
        key, path = _key_of(request), request.url.path
        if key not in (self._key, PLATFORM_KEY):
            sentence = "A valid API key is required, sent as `Authorization: Bearer <key>`."
            raise Refusal(401, "invalid_key", {"authorization": [sentence]})
        if (key == PLATFORM_KEY) is not path.startswith("/v1/platform/"):
            kinds = "a platform key", "a key of an organization"
            right, wrong = kinds[::-1] if key == PLATFORM_KEY else kinds
            sentence = f"This call takes {right}, but this is {wrong}."
            raise Refusal(403, "wrong_key", {"authorization": [sentence]})
        if key == PLATFORM_KEY:
            return self._platform.answer(request)
        if self._books.live and path.startswith("/v1/sandbox/"):
            raise NotInFake(f"{path} with a live key")
        calls: dict[tuple[str, str], Callable[[httpx.Request], httpx.Response]] = {
            ("POST", "/v1/points/verify"): self._verify,
            ("POST", "/v1/points/sent-before"): self._sent_before,
            ("POST", "/v1/points/send"): self._send,
            ("GET", "/v1/organization"): self._organization,
            ("GET", "/v1/statement"): self._statement,
            ("POST", "/v1/sandbox/reset"): self._reset,
            ("POST", "/v1/sandbox/clock"): self._clock,
            ("POST", "/v1/sandbox/users"): self._register,
            ("GET", "/v1/batches"): self._list,
            ("GET", "/v1/transactions"): self._list,
            ("GET", "/v1/requests"): self._list,
        }
        is_one = request.method == "GET" and re.fullmatch(r"/v1/(batches|transactions)/[0-9]{1,18}", path)
        call = self._one if is_one else calls.get((request.method, path))
        if call is None:
            raise NotInFake(f"{request.method} {path}")
        if "Points-Rehearse" in request.headers:
            raise NotInFake("the header Points-Rehearse")
        if request.url.query and call not in (self._list, self._statement):
            raise NotInFake("parameters of this call")
        return call(request)

    def _body(self, request: httpx.Request) -> dict[str, Any]:
        body = body_of(request)
        if faults := faults_of(body, is_send=request.url.path.endswith("send")):
            raise Refusal(400, None, faults)
        if self._books.live and rehearsing.reserved_in([item["email"] for item in items_of(body)]):
            raise NotInFake("the reserved recipients with a live key")
        return body

    def _verify(self, request: httpx.Request) -> httpx.Response:
        data, additional = self._books.verify(self._body(request))
        return envelope(200, data=data, additional=additional)

    def _sent_before(self, request: httpx.Request) -> httpx.Response:
        return envelope(200, data=sent_before(self._books, self._body(request), idempotency_key_of(request)))

    def _send(self, request: httpx.Request) -> httpx.Response:
        body, key, prefers = self._body(request), idempotency_key_of(request), request.headers.get("Prefer")
        if prefers is not None and not re.fullmatch(r"respond-async|wait=[0-9]+", prefers):
            raise NotInFake(f"Prefer: {prefers}")
        reserved = rehearsing.reserved_in([item["email"] for item in items_of(body)])
        if "rate_limited" in reserved:
            sentence = "The key makes more calls than it may. Wait for the seconds that Retry-After names."
            raise Refusal(429, "rate_limited", {"rate_limit": [sentence]})
        if "unavailable" in reserved:
            sentence = "The service cannot reach its database. Try again soon."
            raise Refusal(503, "out_of_reach", {"service": [sentence]})
        batch, existed = self._books.accept(body, key)
        about, location = {"batch_id": batch["batch_id"]}, {"Location": f"/v1/batches/{batch['batch_id']}"}
        if "silent" in reserved and not existed:
            self._requests.note(request, envelope(202, additional=about), is_listed=True)
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.", request=request)
        was_issued = batch["status"] == "issued"
        is_left = not existed and (prefers == "respond-async" or "accepted" in reserved)
        if not was_issued and (self._is_queued() or is_left):
            data = {**about, "status": "queued"}
            return envelope(202, data=data, additional=about, headers=location | {"Retry-After": "1"})
        self._books.issue_all()  # In order: those before it too.
        data = {name: batch[name] for name in ("amount", "current_balance")}
        data = {"transactions": self._books.as_issued(batch), **data}
        replayed = {"Idempotency-Replayed": "true"} if was_issued else {}
        return envelope(201, data=data, additional=about, headers=location | replayed)

    def _reset(self, _request: httpx.Request) -> httpx.Response:
        self._books.reset()
        return envelope(200, data=self._books.organization())

    def _clock(self, request: httpx.Request) -> httpx.Response:
        return envelope(200, data=rehearsing.clock(self._books, body_of(request)))

    def _register(self, request: httpx.Request) -> httpx.Response:
        status, user, claimed = rehearsing.register(self._books, body_of(request))
        return envelope(status, data=user, additional={"claimed": claimed})

    def _organization(self, _request: httpx.Request) -> httpx.Response:
        scheduled = {"batches": 0, "amount": 0, "next_at": None}
        limits = {"recipients": RECIPIENTS_MAX, "amount": AMOUNT_MAX, "body_bytes": 8_388_608}
        return envelope(200, data=self._books.organization(), additional={"scheduled": scheduled, "limits": limits})

    def _statement(self, request: httpx.Request) -> httpx.Response:
        self._look()
        return envelope(200, data=statement(self._books, request.url.params))

    def _one(self, request: httpx.Request) -> httpx.Response:
        self._look()
        name, _, number = request.url.path.removeprefix("/v1/").partition("/")
        return envelope(200, data=self._books.find(name, int(number)))

    def _list(self, request: httpx.Request) -> httpx.Response:
        self._look()
        name = request.url.path.removeprefix("/v1/")
        asked = asked_for(name, request.url.params)
        if not isinstance(asked, Asked):
            raise Refusal(400, None, asked)
        of = self._requests.listed if name == "requests" else partial(self._books.listed, name)
        rows, more = asked.page_of(of(asked.matches))
        return envelope(200, data={name: rows, "next_cursor": more})

    def _look(self) -> None:
        """Issue what is queued, as the workers would have done by now."""
        if not self._is_queued():
            self._books.issue_all()

    def _is_queued(self) -> bool:
        self.queued -= (was_queued := self.queued > 0)
        return was_queued


def _key_of(request: httpx.Request) -> str:
    """Return the key of a call; empty if it has none."""
    scheme, _, key = str(request.headers.get("Authorization", "")).partition(" ")
    return key if scheme == "Bearer" else ""
