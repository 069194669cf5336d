"""Sending one intent: the calls it takes until its outcome is known, and what an answer must look like."""

import threading
import time
from collections.abc import Mapping
from itertools import pairwise

from tests.crash.calls import Answer, Cut, Unsent, call
from tests.crash.intents import Intent, Intents, Known
from tests.crash.parties import Party

# A caller that cannot learn the outcome for this long gives up, which is a violation.
GIVES_UP_AFTER_S = 90.0
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
        deadline = intent.started_at + GIVES_UP_AFTER_S
        while not self.attempt(party, intent, prefer=prefer) and intent.key is not None:
            if time.monotonic() > deadline:
                self.intents.violation(f"send {intent.label} was still {intent.known.value} after {GIVES_UP_AFTER_S} s")
                return
            if self.giving_up.wait(RETRIES_AFTER_S):
                return
            self.intents.count("retries")

    def attempt(self, party: Party, intent: Intent, *, prefer: str = "") -> bool:
        """Make one call for an intent; tell whether its outcome is known for good now."""
        headers = {"Prefer": prefer} if prefer else {}
        if intent.known is Known.NOT_SENT:
            intent.known = Known.NOTHING
        try:
            answer = self.post(party, intent, headers)
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

    def post(self, party: Party, intent: Intent, headers: Mapping[str, str]) -> Answer:
        key = {} if intent.key is None else {"Idempotency-Key": intent.key}
        return call(
            self.port,
            "POST",
            "/v1/points/send",
            key=party.development if intent.sandbox else party.live,
            body=intent.body(),
            headers={**headers, **key},
        )

    def _note_unknown(self, intent: Intent) -> None:
        self.intents.count("unknown outcomes")
        intent.was_unknown = True

    def _learn(self, intent: Intent, answer: Answer) -> bool:
        if answer.status == 201:
            intent.take(answer)
            self._check_issued(intent)
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

    def _check_issued(self, intent: Intent) -> None:
        """Hold a 201 against its own request: one transaction per recipient, in order, the balances in a chain."""
        rows = intent.issued
        wrong = self.intents.violation
        if [row.email for row in rows] != intent.recipients:
            wrong(f"send {intent.label} was answered with other recipients, or in another order")
        if intent.total != sum(row.amount for row in rows if row.debited) or rows[-1].balance != intent.current_balance:
            wrong(f"send {intent.label} was answered with sums that are not those of its transactions")
        for before, after in pairwise(rows):
            if before.balance - after.balance != (after.amount if after.debited else 0):
                wrong(f"send {intent.label} was answered with a balance that does not follow from the one before")
        for row, amount, reference in zip(rows, intent.amounts, intent.references, strict=False):
            told = (row.amount, row.reference, row.sandbox, row.organization_id)
            meant = (amount, reference, intent.sandbox, intent.organization_id)
            if told != meant or row.credited != row.allocated:
                wrong(f"send {intent.label} was answered with a transaction of another request: {row}")
        if intent.atomic and len({row.debited for row in rows}) != 1:
            wrong(f"send {intent.label} is atomic and was debited in part")
