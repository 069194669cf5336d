"""The books of `FakePoints`: one organization, its batches and its keys."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import Any

from points_client.testing.accounts import Accounts, Refusal
from points_client.testing.faults import items_of
from points_client.testing.fields import key_of

SUSPENDED = "The organization is suspended and cannot issue points until it is resumed."
DISABLED = "The organization is disabled and can neither issue points nor take them back."
# The reserved recipients are at this domain.
DOMAIN = "sandbox.points.test"
_INSUFFICIENT = f"insufficient@{DOMAIN}"


class Books:
    """Points of one mode, under one lock. A batch is stored as its JSON, and beside it the body of its send."""

    def __init__(self, balance: int, users: Iterable[str], *, live: bool) -> None:
        self.balance, self.is_suspended, self.live = balance, False, live
        self.ahead = timedelta()
        self.batches: dict[int, dict[str, Any]] = {}
        self._bodies: dict[int, Mapping[str, Any]] = {}
        self._start, self._refilled, self._made_at = balance, balance, said(self.now())
        self.refills = [(self._made_at, balance)]
        self.accounts = Accounts(users, self._made_at)
        self._issued: dict[int, list[dict[str, Any]]] = {}
        self.lock = RLock()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def reset(self) -> None:
        """Put balance and clock back; users and batches stay."""
        with self.lock:
            self.issue_all()
            self.ahead = timedelta()
            if self.balance != self._start:
                self.refills.append((said(self.now()), self._start - self.balance))
                self.balance = self._refilled = self._start

    def claim(self, email: str) -> dict[str, Any]:
        """Credit what is held for an address to who is paid there, and return what that was."""
        with self.lock:
            self.issue_all()
            user = self.accounts.paid_at(email)
            held = [one for one in self._rows("transactions") if one["state"] == "held"]
            claimed = [one for one in held if key_of(one["email"]) == key_of(email)]
            for one in claimed:
                one |= {"recipient": user, "credited": True, "allocated": True, "state": "credited"}
                counts = self.batches[one["id"] // 131_072]["counts"]
                counts["credited"], counts["held"] = counts["credited"] + 1, counts["held"] - 1
            return {"transactions": len(claimed), "amount": sum(one["amount"] for one in claimed)}

    def credited_to(self, user_id: int) -> int:
        """Return the points that a user has."""
        with self.lock:
            self.issue_all()
            credited = (one for one in self._rows("transactions") if one["credited"])
            return sum(one["amount"] for one in credited if one["recipient"]["id"] == user_id)

    def refill(self, amount: int) -> int:
        """Put points into the balance, and return it."""
        with self.lock:
            self.issue_all()
            self.refills.append((said(self.now()), amount))
            self.balance = self._refilled = self.balance + amount
            return self.balance

    def as_issued(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the transactions of a batch as they were when it was issued."""
        return self._issued[batch["batch_id"]]

    def organization(self) -> dict[str, Any]:
        about = {"id": 1, "name": "Fake", "is_disabled": False, "is_suspended": self.is_suspended}
        return {**about, "balance": self.balance, "last_refill": self._refilled, "created_at": self._made_at}

    def verify(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return `data` and `additional_data` of the verify result."""
        with self.lock:
            items = items_of(body)
            code, sentence = _rehearsed(body) or self._suspension() or (None, None)
            amounts, paid = [item["amount"] for item in items], self._paid(items)
            is_rehearsed = paid < len(items) and key_of(items[paid]["email"]) == _INSUFFICIENT
            available = min(self.balance, sum(amounts[:paid])) if is_rehearsed else self.balance
            if code is None and sum(amounts) > available:
                code = "insufficient_balance"
                sentence = f"The issue needs {sum(amounts)} points, but the balance is {available}."
            about = {"code": code, "required": sum(amounts), "available": available, "affordable_recipients": paid}
            return {"validated": code is None, "error": sentence}, about

    def accept(self, body: Mapping[str, Any], key: str | None) -> tuple[dict[str, Any], bool]:
        """Return the batch of a send, and whether its key was known.

        Raises:
            Refusal: the key was used with another body, or the organization is suspended.
        """
        with self.lock:
            _refuse(_rehearsed(body))
            for batch in self.batches.values():
                if key is not None and batch["idempotency_key"] == key:
                    if _meaning(self._bodies[batch["batch_id"]]) != _meaning(body):
                        sentence = "This Idempotency-Key was used with another body; another call needs a new key."
                        raise Refusal(422, "idempotency_key_reused", {"idempotency_key": [sentence]})
                    return batch, True
            _refuse(self._suspension())
            batch_id = len(self.batches) + 1
            about = {"batch_id": batch_id, "status": "queued", "final": False, "refusal": None}
            about["created_at"] = said(self.now())
            about |= {"idempotency_key": key, "label": body.get("label") or None, "metadata": body.get("metadata")}
            about |= {"api_key_id": 1, "sender": None, "approval": None, "counts": None}
            about |= {"send_at": None, "issued_at": None}
            about |= {"transactions": None, "amount": None, "current_balance": None}
            self.batches[batch_id], self._bodies[batch_id] = about, body
            return about, False

    def issue(self, batch: dict[str, Any]) -> None:
        """Pay a batch in order, unless it is issued, up to the first recipient that the balance cannot pay."""
        with self.lock:
            if batch["status"] == "issued":
                return
            body = self._bodies[batch["batch_id"]]
            items, now = items_of(body), said(self.now())
            paid = self._paid(items)
            if body.get("atomic") and paid < len(items):
                paid = 0
            made = [self._transaction(batch["batch_id"], item, place, paid, now) for place, item in enumerate(items)]
            credited = sum(one["credited"] for one in made)
            counts = {"recipients": len(made), "debited": paid, "credited": credited, "held": paid - credited}
            counts |= {"unpaid": len(made) - paid, "reversed": 0}
            amount = sum(one["amount"] for one in made if one["debited"])
            batch |= {"status": "issued", "final": True, "transactions": made, "counts": counts, "issued_at": now}
            batch |= {"amount": amount, "current_balance": self.balance}
            self._issued[batch["batch_id"]] = deepcopy(made)

    def sent(self, *, but_key: str | None) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Return the batches without that key, each with what it has paid, or is to pay if it is not issued yet."""
        with self.lock:
            others = [one for one in self.batches.values() if but_key is None or one["idempotency_key"] != but_key]
            rows = ((one, one["transactions"] or items_of(self._bodies[one["batch_id"]])) for one in others)
            return [(one, [row for row in paid if row.get("debited", True)]) for one, paid in rows]

    def issue_all(self) -> None:
        """Issue what is queued, in order."""
        with self.lock:
            for batch in self.batches.values():
                self.issue(batch)

    def _transaction(self, batch_id: int, item: dict[str, Any], place: int, paid: int, now: str) -> dict[str, Any]:
        debited = place < paid
        user = self.accounts.paid_at(item["email"])
        credited = debited and user is not None
        self.balance -= item["amount"] if debited else 0
        state = ("credited" if credited else "held") if debited else "unpaid"
        return {
            "id": batch_id * 131_072 + place,
            "organization": self.organization(),
            "recipient": user,
            **{name: item[name] for name in ("amount", "label", "reference")},
            "email": item["email"].strip(),
            "debited": debited,
            "credited": credited,
            "allocated": credited,
            "sender": None,
            "reversed": 0,
            "held_until": None,
            "state": state,
            "sandbox": not self.live,
            "created_at": now,
        }

    def _suspension(self) -> tuple[str, str] | None:
        return ("organization_suspended", SUSPENDED) if self.is_suspended else None

    def _paid(self, items: list[dict[str, Any]]) -> int:
        """Return how many recipients the balance pays, from the first on."""
        left = self.balance
        for place, item in enumerate(items):
            if item["amount"] > left or key_of(item["email"]) == _INSUFFICIENT:
                return place
            left -= item["amount"]
        return len(items)

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
        with self.lock:
            newest_first = [self.batches[batch_id] for batch_id in sorted(self.batches, reverse=True)]
            if name == "batches":
                return newest_first
            return [one for batch in newest_first for one in reversed(batch["transactions"] or ())]


def _meaning(body: Mapping[str, Any]) -> Any:
    items = [{**item, "email": key_of(item["email"])} for item in items_of(body)]
    return items, bool(body.get("atomic")), body.get("metadata") or {}


def _rehearsed(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why the organization may not issue, as the recipients rehearse it: a word and a sentence."""
    keys = {key_of(item["email"]) for item in items_of(body)}
    if f"disabled@{DOMAIN}" in keys:
        return "organization_disabled", DISABLED
    return ("organization_suspended", SUSPENDED) if f"suspended@{DOMAIN}" in keys else None


def _refuse(state: tuple[str, str] | None) -> None:
    if state is not None:
        raise Refusal(403, state[0], {"organization": [state[1]]})


def said(moment: datetime) -> str:
    """Write a time as the service does."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
