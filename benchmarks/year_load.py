"""A day of callers in the simulated year: programs by HTTP, a member in the console, a receiver of webhooks.

Its 914 transactions are a thousandth of 10⁹ in three years. Each kind of row that grows is made on each day, or in each
month.
"""

import http.client
import json
from datetime import datetime, timedelta
from typing import Any

from app.local.ports import HOST
from app.members import sessions
from app.postgres.database import transaction
from app.web.application import create_app
from benchmarks.options import NotMeasured
from benchmarks.service import Sender, Service
from tests.integration.console_lists import checked, confirm
from tests.integration.visitors import Visitor, make_member, sign_in

# Sends of many, sends of one, and the recipients of each of the first; the list in the console is one more.
_LARGE, _SMALL, _RECIPIENTS = 4, 13, 180
_STRANGERS, _REGISTERED, _USERS, _IMPORTED = 5, 3, 2_000, 50
_HELD_DAYS, _MONTH = 30, 30
_MEMBER = "member@example.com"


class Callers:
    """Everybody who uses the service, day after day."""

    def __init__(self, service: Service, sender: Sender, webhook: str) -> None:
        self._service, self._key, self._organization = service, sender.key, sender.organization_id
        self._connection = http.client.HTTPConnection(HOST, service.port, timeout=120)
        self.emails = service.accounts("year", _USERS)
        self._platform = service.platform_key()
        self._ask("PATCH", self._own(""), {"held_days": _HELD_DAYS})
        self._bounded = self._ask("POST", self._own("/keys"), {"daily_limit": 10**9})["key"]
        self._call("POST", "/v1/webhooks", self._key, {"url": webhook, "types": ["*"]})
        self._member = make_member(self._organization, _MEMBER, "admin")
        self._app = create_app()
        self._batch: int | None = None

    def day(self, number: int, now: datetime) -> None:
        """Do all that is done on a day."""
        if number % _MONTH == 0:
            self._service.accounts(f"imported.{number}", _IMPORTED)
            key = self._ask("POST", self._own("/keys"), {})
            self._ask("DELETE", self._own(f"/keys/{key['id']}"))
        self._register(number)
        self._send(number)
        self._call_off(number, now)
        self._read(now)
        self._use_console(number)

    def _register(self, number: int) -> None:
        """Register some who were sent points the day before, change an address, erase a user; refill, send a link."""
        users = [
            self._ask("POST", "/v1/platform/users", {"email": email, "first_name": "A", "last_name": "B"})["id"]
            for email in _strangers(number - 1)[:_REGISTERED]
        ]
        self._ask("PATCH", f"/v1/platform/users/{users[0]}", {"email": f"moved.{number}@example.com"})
        self._ask("POST", f"/v1/platform/users/{users[1]}/erase", {})
        self._ask("POST", self._own("/refills"), {"amount": 1_000}, once=f"refill-{number}")
        self._ask("POST", self._own(f"/members/{self._member}/link"), {}, once=f"link-{number}")

    def _send(self, number: int) -> None:
        """Take back a send of the day before, and send to many and to one."""
        if self._batch is not None:
            body = {"batch": self._batch, "reason": "Bench"}
            self._call("POST", "/v1/points/reverse", self._key, body, once=f"reversal-{number}")
        for place in range(_LARGE):
            emails = [*_strangers(number), *self._some(number * _LARGE + place, _RECIPIENTS - _STRANGERS)]
            items = [{"email": email, "amount": 1, "reference": f"{number}-{place}-{email}"} for email in emails]
            sent = self._call("POST", "/v1/points/send", self._key, {"items": items}, once=f"large-{number}-{place}")
            self._batch = sent["additional_data"]["batch_id"]
        for place in range(_SMALL):
            body = {"recipients": self._some(number * _SMALL + place, 1), "amount": 1}
            self._call("POST", "/v1/points/send", self._bounded, body, once=f"small-{number}-{place}")

    def _call_off(self, number: int, now: datetime) -> None:
        """Put off two sends: one is issued the next day, the other is cancelled."""
        for name, key, hours in (("later", self._key, 12), ("cancelled", self._bounded, 48)):
            at = (now + timedelta(hours=hours)).isoformat()
            body = {"recipients": self._some(number, 1), "amount": 1, "send_at": at}
            put_off = self._call("POST", "/v1/points/send", key, body, once=f"{name}-{number}")
        self._call("POST", f"/v1/batches/{put_off['data']['batch_id']}/cancel", self._bounded, {})

    def _read(self, now: datetime) -> None:
        month = f"from={(now - timedelta(days=28)).date()}&to={now.date()}"
        for path in ("batches", "transactions?state=held", "events", f"statement?{month}", "requests"):
            self._call("GET", f"/v1/{path}", self._key)

    def _use_console(self, number: int) -> None:
        """Sign in, use a form up, upload two lists and send one of them."""
        client, _ = sign_in(self._app, _MEMBER)
        visitor = Visitor(member_id=self._member, organization_id=self._organization, email=_MEMBER, client=client)
        with transaction() as connection:
            sessions.use_form(connection, f"{number:024}", member_id=self._member)
        for name in ("sent", "unsent"):
            lines = "\n".join(["email", *self._some(number, _RECIPIENTS)])
            path = checked(visitor, lines, file=f"{name}-{number}.csv", amount="1")
            if name == "sent" and confirm(visitor, path, again="yes").status_code != 303:
                raise NotMeasured(f"The console did not send the list of day {number}.")

    def _some(self, place: int, count: int) -> list[str]:
        begin = place * count % (_USERS - count)
        return self.emails[begin : begin + count]

    def _own(self, path: str) -> str:
        return f"/v1/platform/organizations/{self._organization}{path}"

    def _ask(self, method: str, path: str, body: object = None, *, once: str | None = None) -> Any:
        return self._call(method, path, self._platform, body, once=once).get("data")

    def _call(self, method: str, path: str, key: str, body: object = None, *, once: str | None = None) -> Any:
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        headers |= {} if body is None else {"Content-Type": "application/json"}
        headers |= {} if once is None else {"Idempotency-Key": once}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        document = json.loads(answer.read() or b"{}")
        if answer.status not in (200, 201, 202, 204):
            raise NotMeasured(f"{method} {path} was answered with {answer.status}: {document}")
        return document


def _strangers(number: int) -> list[str]:
    """Return those whom points of a day are held for; some register the next day."""
    return [f"stranger.{number}.{place}@example.com" for place in range(_STRANGERS)]
