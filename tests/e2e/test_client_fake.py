"""`FakePoints` beside the service: the same random calls, well and badly formed, get the same answers word for word."""

import json
import os
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx

from points_client.testing import KEY, URL, FakePoints, NotInFake
from tests.deadline import until
from tests.service.inside import Service

# 3,000 is the long run: CLIENT_CALLS=3000.
CALLS, SEED = int(os.environ.get("CLIENT_CALLS", "600")), 45
BALANCE = 20_000
# The connection of `silent` ends, so there is no answer to compare.
RESERVED = ("Suspended", "disabled", "insufficient", "insufficient", "accepted", "unavailable", "rate_limited")
FIELDS = ("recipient", "recipients", "items", "amount", "atomic", "label", "expect", "metadata")
ODD_VALUES: tuple[Any, ...] = (
    None,
    "",
    [],
    {},
    True,
    0,
    -1,
    7,
    10**9 + 1,
    2**70,
    1.5,
    "x",
    "a\0b",
    [1],
    {"a": 1},
    "x" * 256,
)
GONE = {"created_at", "issued_at", "last_refill", "name", "api_key_id", "next_cursor"}


class Draw:
    """Random calls. Addresses, keys and references come from small pools, so that they meet again."""

    def __init__(self, seed: int, user: str) -> None:
        self.random = random.Random(seed)  # noqa: S311  # It is to be repeated, not secret.
        self.user = user
        self.sent: list[tuple[str, Any]] = []
        self.now = datetime.now(UTC) + timedelta(days=1)

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def email(self) -> Any:
        if self.often(0.02):
            return f"{self.random.choice(RESERVED)}@sandbox.points.test"
        if self.often(0.02):
            return self.random.choice(
                ("", " ", "nobody", 5, None, "x" * 255 + "@a.bc", True, "a@b", "jörg@example.com")
            )
        name = self.random.choice((self.user, *(f"draw-{number}@example.com" for number in range(400))))
        return self.random.choice((name, name, name, name.upper(), f" {name} "))

    def amount(self) -> Any:
        return self.random.choice(ODD_VALUES) if self.often(0.05) else self.random.choice((1, 2, 5, 40, 900))

    def item(self) -> Any:
        if self.often(0.03):
            return self.random.choice(ODD_VALUES)
        item = {"email": self.email(), "amount": self.amount()}
        if self.often(0.5):
            item["reference"] = self.random.choice(
                (None, "", "a b", "x" * 129, 5, "r-1", *(f"r-{self.random.randrange(60)}" for _ in range(30)))
            )
        if self.often(0.2):
            item["label"] = self.random.choice((None, "", 5, "x" * 256, *("mine",) * 12))
        item = {name: value for name, value in item.items() if value is not None or self.often(0.1)}
        return item | ({self.random.choice(("emial", "zzz")): 1} if self.often(0.03) else {})

    def body(self) -> dict[str, Any]:
        how_many = self.random.choice((1, 1, 2, 3, 6))
        lists = self.random.random()
        body: dict[str, Any] = {}
        if lists < 0.45:
            body["items"] = [self.item() for _ in range(how_many)]
        elif lists < 0.9:
            body["recipients"] = [self.email() for _ in range(how_many)]
        elif lists < 0.97:
            body["recipient"] = self.email()
        if self.often(0.8):
            body["amount"] = self.amount()
        if self.often(0.2):
            body["atomic"] = self.random.choice((None, "yes", *(True, False) * 6))
        if self.often(0.2):
            body["label"] = self.random.choice(("", None, 7, "x" * 256, *("mine",) * 12))
        if self.often(0.15):
            body["expect"] = {"recipients": how_many} | ({"amount": 5} if self.often(0.1) else {})
        if self.often(0.15):
            body["metadata"] = {"k": self.random.choice(("v", "w", 5, "\0", "x" * 501))} | (
                {"": "v"} if self.often(0.1) else {}
            )
        for _ in range(self.random.choice((0,) * 9 + (1, 2))):
            body[self.random.choice((*FIELDS, "atomc", "nonsense"))] = self.random.choice(ODD_VALUES)
        return body

    def send(self) -> tuple[dict[str, str], Any]:
        """Return headers and body: without a key, with a new one, or with an old one for the same or another body."""
        body, kind = self.body(), self.random.random()
        if kind < 0.4:
            return {}, body
        if kind < 0.7 or not self.sent:
            self.sent.append((f"k-{len(self.sent)}", body))
            return {"Idempotency-Key": self.sent[-1][0]}, body
        key, earlier = self.random.choice(self.sent)
        return {"Idempotency-Key": key}, earlier if kind < 0.93 else body

    def known_key(self) -> dict[str, str]:
        """Return the header of a key that was sent, or none."""
        return {"Idempotency-Key": self.random.choice(self.sent)[0]} if self.sent and self.often(0.3) else {}

    def own(self) -> dict[str, Any]:
        """Return the body of a call that changes the clock or the users of the sandbox, or of neither."""
        self.now += timedelta(days=1)
        user = {
            "email": self.email(),
            "first_name": self.random.choice(("Ada", "Ada", "Ada", " ", 5, "x" * 256)),
            "last_name": self.random.choice(("", "Lovelace", None)),
        }
        return self.random.choice((user, user, user, {"now": self.now.isoformat()}, {"now": 5}, {}))

    def query(self, name: str) -> dict[str, str]:
        pools = {
            "limit": ("1", "2", "5", "1000", "0", "1001", "x", ""),
            "status": ("issued", "queued", "done", ""),
            "state": ("held", "credited", "unpaid", "x"),
            "debited": ("true", "False", "1"),
            "credited": ("true", "false"),
            "reference": ("r-1", "r-2"),
            "label": ("mine", "x"),
            "email": (self.user, "draw-1@example.com", "draw-2@example.com"),
            "idempotency_key": ("k-1", "k-2", "k-3"),
            "nonsense": ("1",),
        }
        return {
            field: self.random.choice(pools[field])
            for field in self.random.sample(list(pools), self.random.choice((0, 1, 1, 2)))
        }

    def days(self) -> dict[str, str]:
        """Return the query of a statement: of days before all calls, or one at fault. Midnight may be just now."""
        pool = ("2020-01-01", "2020-01-31", "2020-02-30", "2019-12-31", "2020-1-1", "")
        query = {name: self.random.choice(pool) for name in ("from", "to") if not self.often(0.1)}
        return query | ({"form": "x"} if self.often(0.1) else {})

    def call(self, last_batch: int) -> tuple[str, str, dict[str, str], Any, dict[str, str]]:
        """Return method, path, headers, body and query."""
        kind = self.random.random()
        if kind < 0.25:
            look, headers = self.random.choice((("verify", {}), ("sent-before", self.known_key())))
            return "POST", f"/v1/points/{look}", headers, self.body(), {}
        if kind < 0.75:
            return "POST", "/v1/points/send", *self.send(), {}
        if kind < 0.76:
            return "POST", f"/v1/sandbox/{self.random.choice(('clock', 'users', 'users', 'users'))}", {}, self.own(), {}
        if kind < 0.82:
            paths = (("GET", "/v1/organization"), ("POST", "/v1/sandbox/reset"), ("GET", "/v1/statement"))
            method, path = self.random.choice(paths)
            return method, path, {}, None, self.days() if path == "/v1/statement" else {}
        if kind < 0.88:
            return "GET", f"/v1/batches/{self.random.randrange(1, last_batch + 2)}", {}, None, {}
        name = self.random.choice(("batches", "transactions"))
        return "GET", f"/v1/{name}", {}, None, self.query(name)


def plain(value: Any, ids: Callable[[int], int]) -> Any:
    """Return an answer without what must differ; a batch's id becomes its number, a transaction's number and place."""
    if isinstance(value, list):
        return [plain(one, ids) for one in value]
    if not isinstance(value, dict):
        return value
    found = {name: plain(one, ids) for name, one in value.items() if name not in GONE}
    for name in ("batch_id", "id"):
        if isinstance(number := found.get(name), int):
            place = number % 131_072 if "organization" in value else 0
            batch = ids(number // 131_072 if "organization" in value else number)
            found[name] = [batch, place] if name == "batch_id" or "organization" in value else None
    return found


def _is_final(real: httpx.Client, path: str) -> bool:
    return bool(real.get(path).json()["data"]["final"])


def _number(numbers: dict[int, int], batch: int) -> int:
    return numbers.get(batch, 0)


def test_the_fake_answers_as_the_service_or_not_at_all(service: Service) -> None:
    user = "draw-user@example.com"
    service.register(user, "First", "Last")  # As the fake names its users.
    caller = service.organization(sandbox_balance=BALANCE)
    fake, draw = FakePoints(balance=BALANCE, users=[user]), Draw(SEED, user)
    batches: dict[int, int] = {}  # Of the service, by its number in the fake.
    seen = {"the same": 0, "not known": 0, "refused": 0}
    with (
        httpx.Client(
            base_url=service.url, headers={"Authorization": f"Bearer {caller.development}"}, timeout=60
        ) as real,
        httpx.Client(base_url=URL, headers={"Authorization": f"Bearer {KEY}"}, transport=fake) as made,
    ):
        while seen["the same"] < CALLS:
            method, path, headers, body, query = draw.call(len(batches))
            try:
                told = made.request(method, path, headers=headers, json=body, params=query)
            except NotInFake:
                seen["not known"] += 1
                continue
            number = path.removeprefix("/v1/batches/")
            real_path = f"/v1/batches/{batches.get(int(number), 2**40)}" if number.isdecimal() else path
            answered = real.request(method, real_path, headers=headers, json=body, params=query)
            if path.endswith("send") and told.is_success:
                batches[told.json()["additional_data"]["batch_id"]] = answered.json()["additional_data"]["batch_id"]
                if told.status_code == 202:
                    made.get(f"/v1/batches/{next(reversed(batches))}")
                    until(partial(_is_final, real, answered.headers["Location"]), every_s=0.1)
            numbers = {of_service: of_fake for of_fake, of_service in batches.items()}
            assert answered.status_code == told.status_code, (method, path, body, query, answered.text, told.text)
            expected = plain(answered.json(), partial(_number, numbers))
            found = plain(told.json(), lambda batch: batch)
            if told.status_code == 404:  # Its sentence names the id.
                expected["errors"] = found["errors"] = None
            assert found == expected, (method, path, headers, json.dumps(body), query)
            replayed = [one.headers.get("Idempotency-Replayed") for one in (answered, told)]
            assert replayed[0] == replayed[1], (method, path, headers, body)
            seen["the same"] += 1
            seen["refused"] += not told.is_success
        assert real.get("/v1/organization").json()["data"]["balance"] == fake.balance
    assert CALLS / 5 < seen["refused"] < CALLS * 2 / 3
    assert seen["not known"] < CALLS / 3, seen
    print(f"{seen}, {len(batches)} batches")
