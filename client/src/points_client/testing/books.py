"""The books of `FakePoints`: one organization, its batches and its keys."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from threading import RLock
from typing import Any

from points_client.testing.faults import items_of
from points_client.testing.fields import key_of

SUSPENDED = "The organization is suspended and cannot issue points until it is resumed."


class Refusal(Exception):
    """A call that is refused, with the status, the code and the errors of the answer."""

    def __init__(self, status: int, code: str | None, errors: dict[str, list[str]]) -> None:
        super().__init__(str(errors))
        self.status, self.code, self.errors = status, code, errors


class Books:
    """Points in memory, under one lock. A batch is stored as its JSON, and beside it the body of its send."""

    def __init__(self, balance: int, users: Iterable[str]) -> None:
        self.balance, self.is_suspended = balance, False
        self.batches: dict[int, dict[str, Any]] = {}
        self._bodies: dict[int, Mapping[str, Any]] = {}
        self._users = {key_of(email): number for number, email in enumerate(users, start=1)}
        self._refilled, self._made_at = balance, _now()
        self._lock = RLock()

    def organization(self) -> dict[str, Any]:
        about = {"id": 1, "name": "Fake", "is_disabled": False, "is_suspended": self.is_suspended}
        return {**about, "balance": self.balance, "last_refill": self._refilled, "created_at": self._made_at}

    def verify(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return `data` and `additional_data` of the verify result."""
        with self._lock:
            amounts = [item["amount"] for item in items_of(body)]
            code, sentence = None, None
            if self.is_suspended:
                code, sentence = "organization_suspended", SUSPENDED
            elif sum(amounts) > self.balance:
                code = "insufficient_balance"
                sentence = f"The issue needs {sum(amounts)} points, but the balance is {self.balance}."
            about = {"code": code, "required": sum(amounts), "available": self.balance}
            about["affordable_recipients"] = self._paid(amounts)
            return {"validated": code is None, "error": sentence}, about

    def accept(self, body: Mapping[str, Any], key: str | None) -> tuple[dict[str, Any], bool]:
        """Return the batch of a send, and whether its key was known.

        Raises:
            Refusal: the key was used with another body, or the organization is suspended.
        """
        with self._lock:
            for batch in self.batches.values():
                if key is not None and batch["idempotency_key"] == key:
                    if _meaning(self._bodies[batch["batch_id"]]) != _meaning(body):
                        sentence = "This Idempotency-Key was used with another body; another call needs a new key."
                        raise Refusal(422, "idempotency_key_reused", {"idempotency_key": [sentence]})
                    return batch, True
            if self.is_suspended:
                raise Refusal(403, "organization_suspended", {"organization": [SUSPENDED]})
            batch_id = len(self.batches) + 1
            about = {"batch_id": batch_id, "status": "queued", "final": False, "refusal": None, "created_at": _now()}
            about |= {"idempotency_key": key, "label": body.get("label") or None, "metadata": body.get("metadata")}
            about |= {"api_key_id": 1, "sender": None, "counts": None, "send_at": None, "issued_at": None}
            about |= {"transactions": None, "amount": None, "current_balance": None}
            self.batches[batch_id], self._bodies[batch_id] = about, body
            return about, False

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

    def issue_all(self) -> None:
        """Issue what is queued, in order."""
        with self._lock:
            for batch in self.batches.values():
                self.issue(batch)

    def _transaction(self, batch_id: int, item: dict[str, Any], place: int, paid: int, now: str) -> dict[str, Any]:
        debited = place < paid
        user = self._users.get(key_of(item["email"]))
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

    def listed(self, name: str, is_asked_for: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Return the rows of a list that are asked for, newest first."""
        rows = [row for row in self._rows(name) if is_asked_for(row)]
        if name == "transactions":
            return rows
        return [{field: value for field, value in row.items() if field != "transactions"} for row in rows]

    def _rows(self, name: str) -> list[dict[str, Any]]:
        with self._lock:
            newest_first = [self.batches[batch_id] for batch_id in sorted(self.batches, reverse=True)]
            if name == "batches":
                return newest_first
            return [one for batch in newest_first for one in reversed(batch["transactions"] or ())]


def _meaning(body: Mapping[str, Any]) -> Any:
    items = [{**item, "email": key_of(item["email"])} for item in items_of(body)]
    return items, bool(body.get("atomic")), body.get("metadata") or {}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
