"""A gateway before the running service that misbehaves on order: busy, gone, slow, or silent after it has delivered."""

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

# What may become of a send, in the order in which they come; after the last, all are simply passed on.
PASS, BUSY, RATE_LIMITED, LOST, QUEUED, HELD = "pass", "busy", "rate limited", "lost", "queued", "held"


class FlakyFront:
    """Passes calls on to a service at `url`, and does with the sends what `fates` say.

    With `recipients_max` it also refuses longer lists, as a service with that setting does. A held send is delivered
    and not answered before `release` is called; one of an address of `held` is, the first time that it comes. A send
    with the address `passed` has no fate: parts of a list are on their way at once, in any order.
    """

    def __init__(
        self,
        url: str,
        *,
        fates: Sequence[str] = (),
        held: Sequence[str] = (),
        recipients_max: int | None = None,
        passed: str = "",
    ) -> None:
        self.target = url
        self.fates = list(fates)
        self.held = [address.encode() for address in held]
        self.recipients_max, self.passed = recipients_max, passed.encode()
        self._held, self._released = threading.Semaphore(0), threading.Event()
        self._held_count = 0
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                front.answer(self, b"")

            def do_POST(self) -> None:
                front.answer(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> "FlakyFront":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def is_holding(self, count: int) -> bool:
        """Wait until so many sends were delivered, and not answered; tell whether they were."""
        while self._held_count < count:
            if not self._held.acquire(timeout=60):
                return False
            self._held_count += 1
        return True

    def release(self) -> None:
        self._released.set()

    def answer(self, call: Any, body: bytes) -> None:
        if body and self._refuses_length(call, body):
            return
        is_passed = not call.path.endswith("/send") or (self.passed and self.passed in body)
        fate = self.fates.pop(0) if self.fates and not is_passed else PASS
        for address in [address for address in self.held if address in body and call.path.endswith("/send")]:
            self.held.remove(address)
            fate = HELD
        if fate in (BUSY, RATE_LIMITED):
            status, headers = (503, {}) if fate == BUSY else (429, {"Retry-After": "1"})
            _reply(call, status, b"<html>busy</html>", headers)
            return
        headers = {name: value for name, value in call.headers.items() if name.lower() not in ("host", "connection")}
        if fate == QUEUED:
            headers["Prefer"] = "respond-async"
        response = httpx.request(
            call.command, self.target + call.path, content=body, headers=headers, timeout=60, trust_env=False
        )
        if fate == LOST:
            call.close_connection = True
            return
        if fate == HELD:
            self._held.release()
            self._released.wait(60)
        passed = {
            name: response.headers[name]
            for name in ("Location", "Retry-After", "Idempotency-Replayed", "Content-Type")
            if name in response.headers
        }
        _reply(call, response.status_code, self._with_limit(call.path, response.content), passed)

    def _with_limit(self, path: str, content: bytes) -> bytes:
        if self.recipients_max is None or not path.endswith("/v1/organization"):
            return content
        document = json.loads(content)
        document["additional_data"]["limits"]["recipients"] = self.recipients_max
        return json.dumps(document).encode()

    def _refuses_length(self, call: Any, body: bytes) -> bool:
        sent = json.loads(body)
        field = "items" if "items" in sent else "recipients"
        length = len(sent.get(field, ()))
        if self.recipients_max is None or length <= self.recipients_max:
            return False
        sentence = f"There must be at most {self.recipients_max} {field}, but there are {length}."
        refusal = {"success": False, "data": None, "errors": {field: [sentence]}, "additional_data": None}
        _reply(call, 400, json.dumps(refusal).encode(), {})
        return True


def _reply(call: Any, status: int, content: bytes, headers: dict[str, str]) -> None:
    try:
        call.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            call.send_header(name, value)
        call.end_headers()
        call.wfile.write(content)
    except (BrokenPipeError, ConnectionResetError):
        call.close_connection = True  # Whoever asked was interrupted meanwhile.
