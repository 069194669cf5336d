"""What a call with a key has made: read from its own answer (201, 202), or from a look at it afterwards."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from points_client.answers import Answer, Unlike
from points_client.comparing import is_about, is_of
from points_client.reading import read
from points_client.requests import Call, path
from points_client.results import Sent
from points_client.reversal_results import Reversed

Q = TypeVar("Q", Sent, Reversed)
_FIGURES = ("transactions", "amount", "current_balance")


@dataclass(frozen=True, kw_only=True)
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
        nothing = {"transactions": (), "amount": None, "current_balance": None}
        about = {"status": self.done, "replayed": answer.replayed, "idempotency_key": self.call.key}
        found = read(self.kind, {**nothing, **about, **answer.additional, **answer.data})
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
        return self.read(Answer(status=200, data=found, additional={}))


def of_send(body: Mapping[str, Any], key: str, wait_s: float) -> Outcome[Sent]:
    """Return how a send is made and read."""
    call = Call(method="POST", path="/v1/points/send", body=body, key=key, wait_s=wait_s)
    return Outcome(
        call=call,
        kind=Sent,
        nouns="batches",
        id_name="batch_id",
        done="issued",
        of_what="recipients",
        is_own=is_about,
    )


def of_reverse(body: Mapping[str, Any], key: str, wait_s: float) -> Outcome[Reversed]:
    """Return how a reverse is made and read."""
    call = Call(method="POST", path="/v1/points/reverse", body=body, key=key, wait_s=wait_s)
    return Outcome(
        call=call,
        kind=Reversed,
        nouns="reversals",
        id_name="reversal_id",
        done="done",
        of_what="transactions",
        is_own=is_of,
    )
