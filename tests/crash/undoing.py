"""Taking back and calling off: a caller learns what became of it, as of its sends."""

from dataclasses import dataclass, field

from tests.crash.calls import Answer, Cut, Unsent, call
from tests.crash.intents import Intent, Intents, Known
from tests.crash.parties import Party
from tests.crash.sending import Sender


@dataclass(kw_only=True, eq=False)
class Undo:
    """One reversal of what was issued: its reason is in the database with every row that it led to, and in no other.

    `places` are those of the send's transactions that are taken back; None: the whole batch.
    """

    reason: str
    of: Intent
    key: str | None
    places: list[int] | None
    amount: int | None
    known: Known = Known.NOTHING
    was_unknown: bool = False
    reversal_id: int | None = None
    taken: list[tuple[int, int, str | None]] = field(default_factory=list)

    def body(self) -> dict[str, object]:
        ids = [self.of.issued[place].id for place in self.places or ()]
        what: dict[str, object] = {"batch": self.of.batch_id} if self.places is None else {"transactions": ids}
        return what | {"reason": self.reason, "amount": self.amount}


class Undoer:
    """Makes the calls of one caller, on the connections of its sender."""

    def __init__(self, sender: Sender, intents: Intents) -> None:
        self._sender = sender
        self._intents = intents

    def reverse(self, party: Party, undo: Undo) -> None:
        """Take points back; with an idempotency key, again until it is known what became of it."""
        self._intents.add_undo(undo)
        self._sender.until_known(f"reversal {undo.reason}", undo, lambda: self._attempt(party, undo))

    def cancel(self, party: Party, intent: Intent) -> None:
        """Call off an accepted batch: it is cancelled, or issued and stays so."""
        answer = self._sender.ask(party, intent.sandbox, "POST", f"/v1/batches/{intent.batch_id}/cancel", {})
        if answer is not None and answer.status == 200:
            intent.known = Known.CANCELLED
            self._intents.count("cancelled")
        elif answer is not None and answer.status not in (409, 503):
            self._intents.violation(f"the cancellation of {intent.label} was answered {answer.status}")

    def move(self, party: Party, intent: Intent, send_at: str) -> None:
        """Move a scheduled batch to another time, while it is scheduled."""
        answer = self._sender.ask(
            party, intent.sandbox, "PATCH", f"/v1/batches/{intent.batch_id}", {"send_at": send_at}
        )
        if answer is not None and answer.status not in (200, 409, 503, *self._intents.of_a_clock_set):
            self._intents.violation(f"the move of {intent.label} was answered {answer.status}")
        self._intents.count("moved")

    def _attempt(self, party: Party, undo: Undo) -> bool:
        if undo.known is Known.NOT_SENT:
            undo.known = Known.NOTHING
        headers = {} if undo.key is None else {"Idempotency-Key": undo.key}
        key = party.key(sandbox=undo.of.sandbox)
        try:
            answer = call(self._sender.port, "POST", "/v1/points/reverse", key=key, body=undo.body(), headers=headers)
        except Unsent:
            if undo.known is Known.NOTHING and not undo.was_unknown:
                undo.known = Known.NOT_SENT
            return False
        except Cut:
            undo.was_unknown = True
            return False
        if answer.status == 201:
            self._take(undo, answer)
            return True
        if answer.status == 202:
            undo.reversal_id, undo.known = answer.body["data"]["reversal_id"], Known.ACCEPTED
        elif answer.status == 503 and "Retry-After" in answer.headers:
            undo.was_unknown = True
        else:
            self._intents.violation(f"reversal {undo.reason} was answered {answer.status}: {answer.raw[:300]!r}")
        return False

    def _take(self, undo: Undo, answer: Answer) -> None:
        """Note a 201, and hold it against its own request."""
        data = answer.body["data"]
        undo.reversal_id, undo.known = data["reversal_id"], Known.ISSUED
        undo.taken = [(row["id"], row["reversed"], row["code"]) for row in data["transactions"]]
        self._intents.count("reversals")
        places = range(len(undo.of.issued)) if undo.places is None else undo.places
        if [row.id for row in (undo.of.issued[place] for place in places)] != [one for one, _, _ in undo.taken]:
            self._intents.violation(f"reversal {undo.reason} was answered with other transactions, or in another order")
        if data["amount"] != sum(points for _, points, _ in undo.taken):
            self._intents.violation(f"reversal {undo.reason} was answered with a sum that is not that of its parts")
