"""Sending one intent: the calls it takes until its outcome is known."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.crash.calls import Answer, Cut, Unsent, call
from tests.crash.intents import Intent, Intents, Known
from tests.crash.parties import Party

if TYPE_CHECKING:
    from tests.crash.undoing import Undo

# A caller that cannot learn the outcome for this long gives up, which is a violation.
GIVES_UP_AFTER_S = 60.0
RETRIES_AFTER_S = 0.2

_REFUSALS = (400, 401, 403, 422)


class Sender:
    """Makes the calls of one caller and writes down what it learns."""

    def __init__(self, port: int, intents: Intents) -> None:
        self.port = port
        self.intents = intents
        self.giving_up = threading.Event()

    def send(self, party: Party, intent: Intent, *, prefer: str = "") -> None:
        """Send an intent; with an idempotency key, again until it is known what became of it."""
        self.intents.add(intent)
        intent.started_at = time.monotonic()
        self.until_known(f"send {intent.label}", intent, lambda: self.attempt(party, intent, prefer=prefer))

    def until_known(self, what: str, one: "Intent | Undo", attempt: Callable[[], bool]) -> None:
        """Make a call; with an idempotency key, again until it is known what became of it."""
        deadline = time.monotonic() + GIVES_UP_AFTER_S
        while not attempt() and one.key is not None:
            if time.monotonic() > deadline:
                self.intents.violation(f"{what} was still {one.known.value} after {GIVES_UP_AFTER_S} s")
                return
            if self.giving_up.wait(RETRIES_AFTER_S):
                return
            self.intents.count("retries")

    def attempt(self, party: Party, intent: Intent, *, prefer: str = "") -> bool:
        """Make one call for an intent; tell whether its outcome is known for good now."""
        if intent.known is Known.NOT_SENT:
            intent.known = Known.NOTHING
        try:
            answer = self.post(party, intent, **({"Prefer": prefer} if prefer else {}))
        except Unsent:
            self.intents.count("refused connections")
            if intent.known is Known.NOTHING and not intent.was_unknown:
                intent.known = Known.NOT_SENT
            return False
        except Cut:
            self._note_unknown(intent)
            return False
        self.intents.count(str(answer.status))
        return self._learn(intent, answer)

    def post(self, party: Party, intent: Intent, **headers: str) -> Answer:
        """Make the call of an intent."""
        if intent.key is not None:
            headers["Idempotency-Key"] = intent.key
        key, body = party.key(sandbox=intent.sandbox), intent.body()
        return call(self.port, "POST", "/v1/points/send", key=key, body=body, headers=headers)

    def ask(self, party: Party, sandbox: bool, method: str, path: str, body: object) -> Answer | None:
        """Make a call that nobody makes again; None if it was not answered."""
        with contextlib.suppress(Unsent, Cut):
            return call(self.port, method, path, key=party.key(sandbox=sandbox), body=body)
        return None

    def _note_unknown(self, intent: Intent) -> None:
        self.intents.count("unknown outcomes")
        intent.was_unknown = True

    def _learn(self, intent: Intent, answer: Answer) -> bool:
        if answer.status == 201:
            intent.take(answer)
            return True
        if answer.status == 202:
            intent.batch_id, intent.known = answer.body["data"]["batch_id"], Known.ACCEPTED
            return False
        if answer.status in _REFUSALS:
            # A call before this one may still be on its way, or may have been accepted: ask again later.
            if intent.was_unknown or intent.known is Known.ACCEPTED:
                return False
            intent.known = Known.REFUSED
            return True
        self._note_unknown(intent)
        if answer.status != 503 or "Retry-After" not in answer.headers:
            self.intents.violation(f"send {intent.label} was answered {answer.status}: {answer.raw[:300]!r}")
        return False
