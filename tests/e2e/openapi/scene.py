"""A scene: what must be so for the running service to answer as an example says, and the call that gets the answer."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from app import users
from app.ledger.claim import register
from tests.service.inside import Organization, Service

# Nobody listens there. No test asks for a name of the world.
RECEIVER = "http://127.0.0.1:1024/points"


@dataclass(kw_only=True)
class Scene:
    """One example's own corner of the service: its organization is Acme, and only its Ada has an account.

    Users belong to no organization, so each scene has a domain of its own in the place of `example.com`.
    """

    service: Service
    described: dict[str, Any]
    domain: str = field(default_factory=lambda: f"{uuid.uuid4().hex}.example.org")

    def acme(self, balance: int = 1_000) -> Organization:
        ada = users.new_user(f"ada@{self.domain}", "Ada", "Lovelace")
        with self.service.connection() as connection:
            register(connection, [ada])
        return self.service.organization(balance, name="Acme")

    def body(self, name: str) -> dict[str, Any]:
        """Return the example of a body, its addresses in this scene's domain."""
        body: dict[str, Any] = dict(self.described["components"]["examples"][name]["value"])
        if "send_at" in body:  # Any date that is written down is past one day.
            body["send_at"] = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        if "held_until" in body:
            body["held_until"] = (datetime.now(UTC) + timedelta(days=99)).isoformat()
        if "recipient" in body:
            body["recipient"] = self._own(body["recipient"])
        if "recipients" in body:
            body["recipients"] = [self._own(email) for email in body["recipients"]]
        if "url" in body:
            body["url"] = RECEIVER
        if "items" in body:
            body["items"] = [item | {"email": self._own(item["email"])} for item in body["items"]]
        return body

    def _own(self, email: str) -> str:
        return email.replace("example.com", self.domain)

    def document(self, answer: httpx.Response) -> Any:
        """Return what was answered, its addresses back in the domain of the examples."""
        text = answer.text.replace(self.domain, "example.com").replace(RECEIVER, "https://shop.example.com/points")
        return httpx.Response(200, text=text).json()

    def verify(self, key: str | None, body: Any, **request: Any) -> httpx.Response:
        return self.service.call("POST", "/v1/points/verify", key=key, json=body, **request)

    def send(self, key: str | None, body: Any, **request: Any) -> httpx.Response:
        return self.service.call("POST", "/v1/points/send", key=key, json=body, **request)

    def webhook(self, key: str) -> str:
        """Make a webhook and return its path."""
        answer = self.service.call("POST", "/v1/webhooks", key=key, json=self.body("new_webhook"))
        assert answer.status_code == 201, answer.text
        return str(answer.headers["Location"])

    def of_webhook(self, method: str = "POST", more: str = "", **request: Any) -> httpx.Response:
        """Make a webhook, and a call of it: `more` is what follows its path."""
        key = self.acme().live
        return self.service.call(method, self.webhook(key) + more, key=key, **request)

    def taking_back(
        self, name: str = "take_a_batch", *, key: str | None = None, path: str = "/v1/points/reverse", **request: Any
    ) -> httpx.Response:
        """Send to two, then call with the example of a body, which names that batch or its transactions."""
        key = key or self.acme().live
        sent = self.send(key, self.body("to_two")).json()
        body = self.body(name)
        if "batch" in body:
            body["batch"] = sent["additional_data"]["batch_id"]
        else:
            body["transactions"] = [one["id"] for one in sent["data"]["transactions"]]
        return self.service.call("POST", path, key=key, json=body, **request)

    def get(self, path: str, key: str | None = None) -> httpx.Response:
        return self.service.call("GET", path, key=key)


Play = Callable[[Scene], httpx.Response]
