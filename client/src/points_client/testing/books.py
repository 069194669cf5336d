"""The books of `FakePoints`: one organization, its batches and its keys."""

from collections.abc import Iterable
from datetime import UTC, datetime
from threading import RLock
from typing import Any


class Refusal(Exception):
    """A call that is refused, with the status, the code and the errors of the answer."""

    def __init__(self, status: int, code: str | None, errors: dict[str, list[str]]) -> None:
        super().__init__(str(errors))
        self.status, self.code, self.errors = status, code, errors


def items_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the items of a body, with its defaults."""
    items = body.get("items") or [{"email": email} for email in body.get("recipients") or [body.get("recipient")]]
    defaults = {"amount": body.get("amount"), "label": body.get("label"), "reference": None}
    return [{**defaults, **item} for item in items]


class Books:
    """Points in memory, under one lock. A batch is stored as its JSON, and beside it the body of its send."""

    def __init__(self, balance: int, users: Iterable[str]) -> None:
        self.balance, self.is_suspended = balance, False
        self.batches: dict[int, dict[str, Any]] = {}
        self._bodies: dict[int, dict[str, Any]] = {}
        self._users = {email.lower(): number for number, email in enumerate(users, start=1)}
        self._refilled, self._made_at = balance, _now()
        self._lock = RLock()

    def organization(self) -> dict[str, Any]:
        about = {"id": 1, "name": "Fake", "is_disabled": False, "is_suspended": self.is_suspended}
        return {**about, "balance": self.balance, "last_refill": self._refilled, "created_at": self._made_at}

    def verify(self, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return `data` and `additional_data` of the verify result."""
        amounts = [item["amount"] for item in items_of(body)]
        code, sentence = None, None
        if self.is_suspended:
            code, sentence = "organization_suspended", "The organization is suspended."
        elif sum(amounts) > self.balance:
            code, sentence = "insufficient_balance", f"The issue needs {sum(amounts)} points."
        about = {"code": code, "required": sum(amounts), "available": self.balance}
        return {"validated": code is None, "error": sentence}, about | {"affordable_recipients": self._paid(amounts)}

    def accept(self, body: dict[str, Any], key: str | None) -> tuple[dict[str, Any], bool]:
        """Return the batch of a send, and whether its key was known.

        Raises:
            Refusal: the key was used with another body, or the organization is suspended.
        """
        with self._lock:
            for batch in self.batches.values():
                if key is not None and batch["idempotency_key"] == key:
                    if _meaning(self._bodies[batch["batch_id"]]) != _meaning(body):
                        errors = {"idempotency_key": ["This Idempotency-Key was used with another body."]}
                        raise Refusal(422, "idempotency_key_reused", errors)
                    return batch, True
            if self.is_suspended:
                errors = {"organization": ["The organization is suspended."]}
                raise Refusal(403, "organization_suspended", errors)
            batch_id = len(self.batches) + 1
            about = {"batch_id": batch_id, "status": "queued", "final": False, "created_at": _now()}
            about |= {"idempotency_key": key, "label": body.get("label"), "metadata": body.get("metadata")}
            empty = {"counts": None, "transactions": None, "amount": None, "current_balance": None, "issued_at": None}
            self.batches[batch_id], self._bodies[batch_id] = {**about, **empty}, body
            return self.batches[batch_id], False

    def issue(self, batch: dict[str, Any]) -> None:
        """Pay a batch in order, unless it is issued, up to the first recipient that the balance cannot pay."""
        with self._lock:
            if batch["status"] == "issued":
                return
            body = self._bodies[batch["batch_id"]]
            items, now = items_of(body), _now()
            paid = self._paid([item["amount"] for item in items])
            if body.get("atomic") and paid < len(items):
                paid = 0
            made = [self._transaction(batch["batch_id"], item, place, paid, now) for place, item in enumerate(items)]
            credited = sum(one["credited"] for one in made)
            counts = {"recipients": len(made), "debited": paid, "credited": credited, "held": paid - credited}
            counts |= {"unpaid": len(made) - paid, "reversed": 0}
            amount = sum(one["amount"] for one in made if one["debited"])
            batch |= {"status": "issued", "final": True, "transactions": made, "counts": counts, "issued_at": now}
            batch |= {"amount": amount, "current_balance": self.balance}

    def _transaction(self, batch_id: int, item: dict[str, Any], place: int, paid: int, now: str) -> dict[str, Any]:
        debited = place < paid
        user = self._users.get(item["email"].strip().lower())
        credited = debited and user is not None
        self.balance -= item["amount"] if debited else 0
        state = ("credited" if credited else "held") if debited else "unpaid"
        return {
            "id": batch_id * 131_072 + place,
            "organization": self.organization(),
            "recipient": None if user is None else {"id": user, "first_name": "First", "last_name": "Last"},
            **{name: item[name] for name in ("amount", "label", "reference")},
            "email": item["email"].strip(),
            "debited": debited,
            "credited": credited,
            "allocated": credited,
            "sender": None,
            "reversed": 0,
            "held_until": None,
            "state": state,
            "sandbox": True,
            "created_at": now,
        }

    def _paid(self, amounts: list[int]) -> int:
        """Return how many recipients the balance pays, from the first on."""
        left = self.balance
        for place, amount in enumerate(amounts):
            if amount > left:
                return place
            left -= amount
        return len(amounts)

    def find(self, name: str, number: int) -> dict[str, Any]:
        """Return a batch or a transaction.

        Raises:
            Refusal: there is none.
        """
        noun = name.removesuffix("es" if name == "batches" else "s")
        id_ = "batch_id" if noun == "batch" else "id"
        found = next((row for row in self._rows(name) if row[id_] == number), None)
        if found is None:
            raise Refusal(404, "not_found", {noun: [f"There is no {noun} {number}."]})
        return found

    def listed(self, name: str, filters: dict[str, str]) -> list[dict[str, Any]]:
        """Return the rows of a list whose fields have these values, newest first."""
        rows = [row for row in self._rows(name) if all(_text(row.get(field)) == filters[field] for field in filters)]
        return [{**row, "transactions": None} for row in rows] if name == "batches" else rows

    def _rows(self, name: str) -> list[dict[str, Any]]:
        newest_first = [self.batches[batch_id] for batch_id in sorted(self.batches, reverse=True)]
        if name == "batches":
            return newest_first
        return [one for batch in newest_first for one in reversed(batch["transactions"] or ())]


def _meaning(body: dict[str, Any]) -> Any:
    items = [{**item, "email": item["email"].strip().lower()} for item in items_of(body)]
    return items, bool(body.get("atomic")), body.get("metadata") or {}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
