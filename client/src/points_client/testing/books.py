"""The books of `FakePoints`: one organization, its users and its batches, in memory."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from points_client.results import Batch, Result, Transaction, User
from points_client.testing.bodies import Order, Refusal, key_of

# The reserved recipients are at this domain, as in the sandbox.
DOMAIN = "sandbox.points.test"
_MAY_NOT_ISSUE = {
    "organization_disabled": "The organization is disabled and can neither issue points nor take them back.",
    "organization_suspended": "The organization is suspended and cannot issue points until it is resumed.",
}


class Books:
    """Points of one mode. A batch is stored as its JSON, and beside it the send that made it."""

    def __init__(self, balance: int, users: Iterable[str], *, live: bool) -> None:
        self.balance, self.is_suspended, self.live = balance, False, live
        self.batches: dict[int, dict[str, Any]] = {}
        self.users: dict[str, dict[str, Any]] = {}  # By the key of their address.
        self._claimed: dict[str, dict[str, int]] = {}
        self._start, self._made_at = balance, _now()
        self._orders: dict[int, Order] = {}
        self._issued: dict[int, list[dict[str, Any]]] = {}
        for email in users:
            self.register({"email": email.strip(), "first_name": "First", "last_name": "Last", "external_id": None})

    def organization(self) -> dict[str, Any]:
        about = {"id": 1, "name": "Fake", "is_disabled": False, "is_suspended": self.is_suspended}
        return {**about, "balance": self.balance, "last_refill": self._start, "created_at": self._made_at}

    def register(self, person: Mapping[str, Any]) -> tuple[bool, dict[str, Any], dict[str, int]]:
        """Register a user; return whether it is new, the user, and what its registration has claimed.

        Raises:
            Refusal: the address or the external id is registered with other values.
        """
        email = key_of(person["email"])
        known = self.users.get(email)
        if known is not None:
            _refuse_other(known, person)
            return False, known, self._claimed[email]
        external_id = person.get("external_id")
        if external_id is not None and any(one["external_id"] == external_id for one in self.users.values()):
            raise Refusal(409, "user_conflict", {"external_id": ["The external_id is that of another user."]})
        user = self.users[email] = {"id": len(self.users) + 1, **person, "created_at": _now()}
        self._claimed[email] = self._claim(user)
        return True, user, self._claimed[email]

    def _claim(self, user: Mapping[str, Any]) -> dict[str, int]:
        held = [one for one in self.transactions() if one["state"] == "held"]
        claimed = [one for one in held if key_of(one["email"]) == key_of(user["email"])]
        for one in claimed:
            one |= {"recipient": _shown(user), "credited": True, "allocated": True, "state": "credited"}
            counts = self.batches[one["id"] // 131_072]["counts"]
            counts |= {"credited": counts["credited"] + 1, "held": counts["held"] - 1}
        return {"transactions": len(claimed), "amount": sum(one["amount"] for one in claimed)}

    def credited_to(self, user_id: int) -> int:
        """Return the points that a user has."""
        credited = [one for one in self.transactions() if one["credited"]]
        return sum(one["amount"] for one in credited if one["recipient"]["id"] == user_id)

    def verify(self, order: Order) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return `data` and `additional_data` of the verify result."""
        code, paid = self._refusal_of(order), self._paid(order)
        required, available = sum(item["amount"] for item in order.items), self.balance
        if paid < len(order.items) and key_of(order.items[paid]["email"]) == f"insufficient@{DOMAIN}":
            available = min(available, sum(item["amount"] for item in order.items[:paid]))
        sentence = _MAY_NOT_ISSUE.get(code or "")
        if code is None and required > available:
            code = "insufficient_balance"
            sentence = f"The issue needs {required} points, but the balance is {available}."
        about = {"code": code, "required": required, "available": available, "affordable_recipients": paid}
        about["awaits_approval"] = False
        return {"validated": code is None, "error": sentence}, about

    def accept(self, order: Order, key: str | None) -> tuple[dict[str, Any], bool]:
        """Return the batch of a send, and whether its key was known.

        Raises:
            Refusal: the key was used with another body, or the organization may not issue.
        """
        for batch in self.batches.values():
            if key is not None and batch["idempotency_key"] == key:
                if not self._orders[batch["batch_id"]].is_like(order):
                    sentence = "This Idempotency-Key was used with another body; another call needs a new key."
                    raise Refusal(422, "idempotency_key_reused", {"idempotency_key": [sentence]})
                return batch, True
        if (code := self._refusal_of(order)) is not None:
            raise Refusal(403, code, {"organization": [_MAY_NOT_ISSUE[code]]})
        batch_id = len(self.batches) + 1
        batch = _empty(Batch)
        batch |= {"batch_id": batch_id, "status": "queued", "final": False, "created_at": _now()}
        batch |= {"idempotency_key": key, "label": order.label, "metadata": order.metadata, "api_key_id": 1}
        self.batches[batch_id], self._orders[batch_id] = batch, order
        return batch, False

    def issue_all(self) -> None:
        """Issue what is queued, in order."""
        for batch in self.batches.values():
            if batch["status"] == "queued":
                self._issue(batch, self._orders[batch["batch_id"]])

    def _issue(self, batch: dict[str, Any], order: Order) -> None:
        """Pay a batch in order, up to the first recipient that the balance cannot pay."""
        now, paid = _now(), self._paid(order)
        if order.atomic and paid < len(order.items):
            paid = 0
        made = []
        for place, item in enumerate(order.items):
            self.balance -= item["amount"] if place < paid else 0
            made.append(self._transaction(batch["batch_id"] * 131_072 + place, item, now, debited=place < paid))
        credited = sum(one["credited"] for one in made)
        counts = {"recipients": len(made), "debited": paid, "credited": credited, "held": paid - credited}
        batch |= {"status": "issued", "final": True, "transactions": made, "issued_at": now}
        batch |= {"counts": {**counts, "unpaid": len(made) - paid, "reversed": 0}}
        batch |= {"amount": sum(one["amount"] for one in made[:paid]), "current_balance": self.balance}
        self._issued[batch["batch_id"]] = deepcopy(made)

    def _transaction(self, number: int, item: dict[str, Any], now: str, *, debited: bool) -> dict[str, Any]:
        user = self.users.get(key_of(item["email"]))
        credited = debited and user is not None
        return {
            **_empty(Transaction),
            "id": number,
            "organization": self.organization(),
            "recipient": None if user is None else _shown(user),
            **item,
            "email": item["email"].strip(),
            "debited": debited,
            "credited": credited,
            "allocated": credited,
            "reversed": 0,
            "state": "credited" if credited else "held" if debited else "unpaid",
            "sandbox": not self.live,
            "created_at": now,
        }

    def outcome(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a send answers, however often: the batch as it was issued."""
        figures = {name: batch[name] for name in ("amount", "current_balance")}
        return {"transactions": self._issued[batch["batch_id"]], **figures}

    def transactions(self) -> list[dict[str, Any]]:
        """Return all, oldest first."""
        return [one for batch in self.batches.values() for one in batch["transactions"] or ()]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a list, newest first."""
        if name == "users":
            return [self.shown(user) for user in reversed(self.users.values())]
        if name == "transactions":
            return self.transactions()[::-1]
        return [_without(batch, "transactions") for batch in reversed(self.batches.values())]

    def shown(self, user: Mapping[str, Any]) -> dict[str, Any]:
        """Return a user as the platform or, with a key of the sandbox, as the organization sees it."""
        return {**user, "balance": self.credited_to(user["id"])} if self.live else _without(user, "external_id")

    def find(self, name: str, number: int) -> dict[str, Any]:
        """Return a batch, a transaction or a user.

        Raises:
            Refusal: there is none.
        """
        noun = name.removesuffix("es" if name == "batches" else "s")
        rows = [*self.batches.values()] if name == "batches" else self.rows(name)
        for row in rows:
            if row["batch_id" if name == "batches" else "id"] == number:
                return row
        raise Refusal(404, "not_found", {noun: [f"There is no {noun} {number}."]})

    def recipients(self, batch_id: int) -> list[dict[str, Any]]:
        """Return the recipients of a batch, in order.

        Raises:
            Refusal: there is no such batch.
        """
        self.find("batches", batch_id)
        return [{**item, "email": item["email"].strip()} for item in self._orders[batch_id].items]

    def _refusal_of(self, order: Order) -> str | None:
        """Return why the organization may not issue, as a word: it is so, or the recipients rehearse it."""
        reserved = reserved_in(order)
        if "disabled" in reserved:
            return "organization_disabled"
        return "organization_suspended" if "suspended" in reserved or self.is_suspended else None

    def _paid(self, order: Order) -> int:
        """Return how many recipients the balance pays, from the first on."""
        left = self.balance
        for place, item in enumerate(order.items):
            left -= item["amount"]
            if left < 0 or key_of(item["email"]) == f"insufficient@{DOMAIN}":
                return place
        return len(order.items)


def reserved_in(order: Order) -> set[str]:
    """Return the names of the reserved recipients of a send."""
    keys = (key_of(item["email"]) for item in order.items)
    return {key.removesuffix(f"@{DOMAIN}") for key in keys if key.endswith(f"@{DOMAIN}")}


def _refuse_other(known: Mapping[str, Any], person: Mapping[str, Any]) -> None:
    for field, names in (("email", ("first_name", "last_name")), ("external_id", ("external_id",))):
        if any(name in person and known[name] != person[name] for name in names):
            sentence = f"The email is that of user {known['id']}, who has other values."
            raise Refusal(409, "user_conflict", {field: [sentence]})


def _shown(user: Mapping[str, Any]) -> dict[str, Any]:
    return {name: user[name] for name in User.__dataclass_fields__}


def _empty(kind: type[Result]) -> dict[str, Any]:
    """Return the fields of an answer without values."""
    return dict.fromkeys(kind.__dataclass_fields__.keys() - Result.__dataclass_fields__.keys())


def _without(row: Mapping[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != field}


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
