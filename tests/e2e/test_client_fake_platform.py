"""`FakePoints` beside the service, as the platform calls them: random calls get the same answers word for word."""

import os
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from app.platform import keys as platform_keys
from points_client.testing import LIVE_KEY, PLATFORM_KEY, URL, FakePoints, NotInFake
from tests.service.inside import Service

# 3,000 is the long run: CLIENT_CALLS=3000.
CALLS, SEED = int(os.environ.get("CLIENT_CALLS", "300")), 48
BALANCE = 50_000
ODD_VALUES: tuple[Any, ...] = (None, "", [], {}, True, 0, 7, 1.5, " ", "a b", "a\0b", "x" * 129, "x" * 256, 2**70)
GONE = {"id", "created_at", "batch_id", "api_key_id", "next_cursor", "last_refill"}
_USERS, _ORGANIZATIONS = "/v1/platform/users", "/v1/platform/organizations"


@dataclass
class Asked:
    """A call with one of two keys."""

    who: str
    method: str
    path: str
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


class Draw:
    """Random calls. Addresses and ids come from small pools, so that they meet again."""

    def __init__(self) -> None:
        self.random = random.Random(SEED)  # noqa: S311  # It is to be repeated, not secret.

    def one_of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def email(self) -> str:
        name = f"sign-up-{self.random.randrange(80)}@example.com"
        return str(self.one_of(name, name, name.upper(), f" {name} "))

    def external_id(self) -> Any:
        return self.one_of(None, None, f"sign-up-{self.random.randrange(60)}")

    def person(self) -> Any:
        person: dict[str, Any] = {"email": self.email(), "first_name": self.one_of("Ada", "Ada", "Ada", "Grace")}
        person["external_id"] = self.external_id()
        if self.random.random() < 0.3:
            person["last_name"] = self.one_of("", "Lovelace")
        if self.random.random() < 0.15:
            person[self.one_of(*person, "last_name", "lastname", "zzz")] = self.one_of(*ODD_VALUES)
        return person

    def refill(self) -> dict[str, Any]:
        body: dict[str, Any] = {"amount": self.one_of(1, 2, 50)}
        if self.random.random() < 0.5:
            body["reference"] = f"invoice-{self.random.randrange(8)}"
        if self.random.random() < 0.2:
            body[self.one_of("amount", "reference", "sandbox", "zzz")] = self.one_of(*ODD_VALUES)
        return body

    def organization(self) -> dict[str, Any]:
        body = {"name": self.one_of("Shop", "Shop", " "), "balance": self.one_of(0, 7, 100)}
        if self.random.random() < 0.5:
            body[self.one_of("held_days", "low_balance", "sandbox_balance", "zzz")] = self.one_of(1, *ODD_VALUES)
        return body

    def call(self, users: int, organizations: int) -> Asked:
        kind = self.random.random()
        if kind < 0.6:
            return self._about_users(kind / 0.6, self.random.randrange(1, users + 2))
        if kind < 0.8:
            recipients = list({self.email().strip().lower() for _ in range(3)})
            body = {"recipients": recipients, "amount": self.one_of(1, 5)}
            return Asked("live", "POST", "/v1/points/send", body)
        if kind < 0.86:
            return Asked("live", "GET", "/v1/transactions", query={"email": self.email().strip(), "limit": "1000"})
        return self._about_organizations(self.random.randrange(1, organizations + 2))

    def _about_users(self, kind: float, user: int) -> Asked:
        if kind < 0.4:
            return Asked("platform", "POST", _USERS, self.person())
        if kind < 0.6:
            many = [self.person() for _ in range(self.random.randrange(1, 6))]
            people = self.one_of(many, many, many, [*many, self.one_of(*ODD_VALUES)], self.one_of(*ODD_VALUES))
            return Asked("platform", "POST", f"{_USERS}/bulk", {"users": people})
        if kind < 0.75:
            changes = {name: value for name, value in self.person().items() if self.random.random() < 0.4}
            return Asked("platform", "PATCH", f"{_USERS}/{user}", changes)
        if kind < 0.9:
            return Asked("platform", "GET", f"{_USERS}/{user}")
        found = self.one_of({"email": self.email().strip()}, {"external_id": str(self.external_id())})
        limit = self.one_of({}, {"limit": self.one_of("1", "0", "x")})
        return Asked("platform", "GET", _USERS, query=found | limit)

    def _about_organizations(self, organization: int) -> Asked:
        kind = self.random.random()
        if kind < 0.3:
            return Asked("platform", "POST", _ORGANIZATIONS, self.organization())
        if kind < 0.5 and organization > 1:
            return Asked("platform", "GET", f"{_ORGANIZATIONS}/{organization}")
        headers = self.one_of({}, {"Idempotency-Key": f"refill-{self.random.randrange(8)}"})
        return Asked("platform", "POST", f"{_ORGANIZATIONS}/{organization}/refills", self.refill(), headers=headers)


def plain(value: Any) -> Any:
    """Return an answer without what must differ: ids, also in sentences, and times."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, str):
        return re.sub(r"\b(user|organization) \d+", r"\1", value)
    if not isinstance(value, dict):
        return value
    gone = GONE | ({"name"} if "is_disabled" in value else set())
    return {name: plain(one) for name, one in value.items() if name not in gone}


def _path(path: str, ids: dict[str, dict[int, int]]) -> str:
    """Return a path of the fake with the id that the service has for the same row, or with one that no row has."""
    for noun, known in ids.items():
        path = re.sub(rf"(?<=/{noun}/)(\d+)", partial(_id, known), path)
    return path


def _id(known: dict[int, int], number: re.Match[str]) -> str:
    return str(known.get(int(number[1]), 2**40))


def _learn(path: str, told: httpx.Response, answered: httpx.Response, ids: dict[str, dict[int, int]]) -> None:
    """Note the ids of what a call has made in both."""
    both = told.json()["data"], answered.json()["data"]
    if path == f"{_USERS}/bulk":
        pairs = zip(*(data["users"] for data in both), strict=True)
        ids["users"] |= {one["user"]["id"]: other["user"]["id"] for one, other in pairs if one["user"] is not None}
    elif path in (_USERS, _ORGANIZATIONS) and "id" in both[0]:
        ids[path.rpartition("/")[2]][both[0]["id"]] = both[1]["id"]


def test_the_fake_answers_the_platform_as_the_service_or_not_at_all(service: Service) -> None:
    caller = service.organization(BALANCE)
    with service.connection() as connection:
        _, platform_key = platform_keys.create(connection, "Tests")
    fake, draw, seen = FakePoints(balance=BALANCE, live=True), Draw(), Counter[str]()
    ids: dict[str, dict[int, int]] = {"users": {}, "organizations": {1: caller.id}}
    keys = {"platform": (PLATFORM_KEY, platform_key), "live": (LIVE_KEY, caller.live)}
    with (
        httpx.Client(base_url=service.url, timeout=60) as real,
        httpx.Client(base_url=URL, transport=fake) as made,
    ):
        while seen["the same"] < CALLS:
            asked = draw.call(*map(len, ids.values()))
            ours, theirs = ({**asked.headers, "Authorization": f"Bearer {key}"} for key in keys[asked.who])
            try:
                told = made.request(asked.method, asked.path, headers=ours, json=asked.body, params=asked.query)
            except NotInFake:
                seen["not known"] += 1
                continue
            path = _path(asked.path, ids)
            answered = real.request(asked.method, path, headers=theirs, json=asked.body, params=asked.query)
            assert answered.status_code == told.status_code, (asked, answered.text, told.text)
            assert plain(told.json()) == plain(answered.json()), asked
            for name in ("Idempotency-Replayed", "Location"):
                assert (name in told.headers) == (name in answered.headers), (name, asked)
            if told.is_success:
                _learn(asked.path, told, answered, ids)
            seen["the same"] += 1
            seen["refused"] += not told.is_success
            seen["claimed"] += (told.json()["additional_data"] or {}).get("claimed", {}).get("transactions", 0)
        left = real.get("/v1/organization", headers={"Authorization": f"Bearer {caller.live}"}).json()["data"]
    assert left["balance"] == fake.balance
    assert CALLS / 10 < seen["refused"] < CALLS * 2 / 3, seen
    assert seen["not known"] < CALLS / 3, seen
    assert seen["claimed"] > 0
