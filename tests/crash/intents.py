"""What callers meant to send, and what they know of it: the other side of the books."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.crash.calls import Answer

if TYPE_CHECKING:
    from tests.crash.undoing import Undo


class Known(Enum):
    """What the caller of one send knows of its outcome."""

    NOTHING = "nothing"  # Not sent, or sent and not answered: 0 or n rows.
    NOT_SENT = "not sent"  # Refused before it was heard: 0 rows.
    REFUSED = "refused"  # Answered 400, 401, 403 or 422: 0 rows.
    ACCEPTED = "accepted"  # Answered 202: final in time.
    ISSUED = "issued"  # Answered 201: n rows, and these.
    CANCELLED = "cancelled"  # Called off, and answered 200: 0 rows.


class IssuedRow(NamedTuple):
    """One transaction of an answered 201, as far as it can be held against the database."""

    id: int
    email: str
    amount: int
    reference: str | None
    balance: int
    debited: bool
    credited: bool
    user_id: int | None


@dataclass(kw_only=True, eq=False)
class Intent:
    """One send: its label is in the database with every row that it led to, and in no other.

    With `own_amounts`, one for each recipient, it is sent as items, and each has a reference.
    """

    label: str
    organization_id: int
    sandbox: bool
    key: str | None
    recipients: list[str]
    amount: int
    atomic: bool
    own_amounts: list[int] | None = None
    send_at: str | None = None
    known: Known = Known.NOTHING
    was_unknown: bool = False
    started_at: float = 0.0
    batch_id: int | None = None
    issued: list[IssuedRow] = field(default_factory=list)
    total: int = 0
    current_balance: int = 0
    created_at: str = ""

    @property
    def amounts(self) -> list[int]:
        return self.own_amounts or [self.amount] * len(self.recipients)

    @property
    def references(self) -> list[str | None]:
        has_some = self.own_amounts is not None
        return [f"{self.label}/{place}" if has_some else None for place in range(len(self.recipients))]

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"atomic": self.atomic, "label": self.label, "send_at": self.send_at}
        if self.own_amounts is None:
            return body | {"recipients": self.recipients, "amount": self.amount}
        columns = zip(self.recipients, self.own_amounts, self.references, strict=False)
        items = [{"email": email, "amount": amount, "reference": name} for email, amount, name in columns]
        return body | {"items": items, "expect": {"recipients": len(items)}}

    def take(self, answer: Answer) -> None:
        """Note an answered 201."""
        data = answer.body["data"]
        self.issued = [_issued_row(transaction) for transaction in data["transactions"]]
        self.total, self.current_balance = data["amount"], data["current_balance"]
        self.created_at = data["transactions"][0]["created_at"]
        self.batch_id = answer.body["additional_data"]["batch_id"]
        self.known = Known.ISSUED


def _issued_row(told: dict[str, Any]) -> IssuedRow:
    plain = {name: told[name] for name in ("id", "email", "amount", "reference", "debited", "credited")}
    recipient = told["recipient"]
    return IssuedRow(**plain, balance=told["organization"]["balance"], user_id=recipient and recipient["id"])


class Intents:
    """Every send and every reversal of a run, and what went wrong in an answer by itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Intent] = []
        self._undos: list[Undo] = []
        self._count: dict[str, int] = {}
        self._violations: list[str] = []
        # Answers that are right once PostgreSQL's clock was set: it may take for past what a caller takes for later.
        self.of_a_clock_set: tuple[int, ...] = ()

    def add(self, intent: Intent) -> None:
        with self._lock:
            self._all.append(intent)

    def add_undo(self, undo: "Undo") -> None:
        with self._lock:
            self._undos.append(undo)

    def undos(self) -> list["Undo"]:
        with self._lock:
            return list(self._undos)

    def count(self, what: str) -> None:
        with self._lock:
            self._count[what] = self._count.get(what, 0) + 1

    def violation(self, sentence: str) -> None:
        """Note an answer that no state of the database can make right."""
        with self._lock:
            self._violations.append(sentence)

    def take_violations(self) -> list[str]:
        with self._lock:
            taken, self._violations = self._violations, []
            return taken

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._count)

    def all(self) -> list[Intent]:
        with self._lock:
            return list(self._all)

    def issued_count(self) -> int:
        return self.counts().get("201", 0)

    def unsettled(self, before: float) -> Iterable[Intent]:
        """Return the sends with a key that were begun before a moment, and whose outcome is not known yet."""
        return [
            intent
            for intent in self.all()
            if intent.key is not None
            and intent.started_at < before
            and intent.known in (Known.NOTHING, Known.ACCEPTED, Known.NOT_SENT)
        ]
