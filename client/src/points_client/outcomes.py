"""What a call with a key has made: read from its own answer (201, 202), or from a look at it afterwards.

An answer is compared with what was sent: that is the only proof that it is the answer to this call.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from points_client.answers import Answer, Unlike, read
from points_client.requests import Call, path
from points_client.results import Reversed, ReversedTransaction, Sent, Transaction

Q = TypeVar("Q", Sent, Reversed)
_ERASED = re.compile(r"erased-\d+")  # The address of a user who was erased since.
_FIGURES = ("transactions", "amount", "current_balance")


@dataclass(frozen=True)
class Outcome(Generic[Q]):
    """How the outcome of `call` is read: `done` is its status then, and `is_own` compares it with what was sent."""

    call: Call
    kind: type[Q]
    nouns: str
    id_name: str
    done: str
    of_what: str
    is_own: Callable[[Sequence[Any], Mapping[str, Any]], bool]

    def read(self, answer: Answer) -> Q:
        """Return the outcome from the answer to the call.

        Raises:
            Unlike: it is about something else.
            Exception: it cannot be read; `Attempts.answered` is the guard.
        """
        about = {"status": self.done, "replayed": answer.replayed, "idempotency_key": self.call.key}
        found = read(self.kind, {**about, "request_id": answer.request_id, **answer.additional, **answer.data})
        if found.status == self.done and not self.is_own(found.transactions, self.call.body or {}):
            raise Unlike(f"it is about other {self.of_what} than those sent")
        return found

    def look(self, found: Q) -> Call:
        """Return the call that looks at what is queued."""
        return Call(method="GET", path=path(self.nouns, getattr(found, self.id_name)))

    def seen(self, answer: Answer) -> Q:
        """Return the outcome from a look. If it is neither queued nor done, the call itself must be made again."""
        data: Mapping[str, Any] = answer.data
        if data["status"] not in ("queued", self.done) or data["idempotency_key"] != self.call.key:
            raise Unlike(f"it is another one, or not {self.done}")
        figures: tuple[str, ...] = _FIGURES if data["status"] == self.done else ()
        found = {name: data[name] for name in (self.id_name, "status", *figures)}
        return self.read(Answer(status=200, data=found, additional={}, request_id=answer.request_id))


def of_send(body: Mapping[str, Any], key: str, wait_s: float) -> Outcome[Sent]:
    """Return how a send is made and read."""
    call = Call(method="POST", path="/v1/points/send", body=body, key=key, wait_s=wait_s)
    return Outcome(call, Sent, "batches", "batch_id", "issued", "recipients", _is_about)


def of_reverse(body: Mapping[str, Any], key: str, wait_s: float) -> Outcome[Reversed]:
    """Return how a reverse is made and read."""
    call = Call(method="POST", path="/v1/points/reverse", body=body, key=key, wait_s=wait_s)
    return Outcome(call, Reversed, "reversals", "reversal_id", "done", "transactions", _is_of)


def _is_about(transactions: Sequence[Transaction], body: Mapping[str, Any]) -> bool:
    """Tell whether transactions are those of a send: its addresses, references and amounts, in its order."""
    items = body.get("items") or [{"email": email} for email in body.get("recipients") or ()]
    return len(transactions) == len(items) and all(
        _is_like(transaction, item, body.get("amount")) for transaction, item in zip(transactions, items, strict=True)
    )


def _is_of(transactions: Sequence[ReversedTransaction], body: Mapping[str, Any]) -> bool:
    """Tell whether transactions are those of a reversal, in its order; of a batch, none is known."""
    return "transactions" not in body or [one.id for one in transactions] == body["transactions"]


def _is_like(transaction: Transaction, item: Mapping[str, Any], amount: object) -> bool:
    return (
        transaction.reference == (item.get("reference") or None)
        and transaction.amount == (item.get("amount") or amount)
        and _is_address_of(transaction.email, str(item.get("email")))
    )


def _is_address_of(answered: str, sent: str) -> bool:
    """Compare addresses as the service does: a replay shows the address as it was written the first time."""
    sent = sent.strip()
    return answered == sent or _normal(answered) == _normal(sent) or bool(_ERASED.fullmatch(answered))


def _normal(email: str) -> str:
    local, _, domain = unicodedata.normalize("NFKC", email).lower().rpartition("@")
    try:
        return f"{local}@{domain.encode('idna').decode()}"
    except UnicodeError:
        return f"{local}@{domain}"
