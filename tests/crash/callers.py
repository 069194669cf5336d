"""Callers: threads that send, repeat, mistake and look up without end, whatever happens to the service."""

import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.crash.calls import Answer, Cut, Unsent, call
from tests.crash.intents import Intent, Intents, Known
from tests.crash.parties import NOT_YET_REGISTERED, REGISTERED, Parties, Party
from tests.crash.sending import Sender
from tests.crash.undoing import Undo, Undoer

_THINKS_S = (0.02, 0.15)
# Recipients of a send, and how many in a hundred sends have so many.
_SIZES = (((1, 1), 50), ((2, 10), 35), ((11, 60), 12), ((61, 200), 3))
# What is left of a caller's pace when the run has more sends than it needs: never none, for faults need load.
_PACE_AHEAD = 0.25
_KEYLESS, _SANDBOX, _ATOMIC, _ASYNC, _WITH_ITEMS = 0.12, 0.35, 0.25, 0.08, 1 / 3
# How many of the answered sends are taken back, and how many of these once more; beside how many of these another is
# called off, and how many of those are for later.
UNDONE, _CALLED_OFF, _LATER = 0.1, 0.2, 0.3
_SOON = timedelta(seconds=61)


class Caller(threading.Thread):
    """One caller; what it does follows from the seed, when it does it does not."""

    def __init__(self, number: int, seed: str, port: int, parties: Parties, intents: Intents) -> None:
        super().__init__(name=f"caller{number}", daemon=True)
        self._random = random.Random(f"{seed} caller {number}")  # noqa: S311  # It is to be repeated, not secret.
        self._number = number
        self._parties = parties
        self._intents = intents
        self.sender = Sender(port, intents)
        self.undone = UNDONE
        self._undoer = Undoer(self.sender, intents)
        self.is_ahead: Callable[[], bool] = lambda: False
        self._stopping = threading.Event()
        self._sent = 0
        self._extras = (self._nothing,) * 6 + (
            self._replay,
            self._replay,
            self._send_another_body,
            self._send_a_faulty_body,
            self._send_with_an_unknown_key,
            self._look_up_anothers_batch,
            self._hold_longer,
        )

    def run(self) -> None:
        while not self._stopping.wait(self._random.uniform(*_THINKS_S)):
            if self.is_ahead() and self._random.random() > _PACE_AHEAD:
                continue
            party = self._random.choice(self._parties.senders)
            intent = self.new_intent(party)
            prefer = "respond-async" if self._random.random() < _ASYNC else ""
            self.sender.send(party, intent, prefer=prefer)
            if intent.known is Known.ISSUED:
                self._random.choice(self._extras)(party, intent)
                while self._random.random() < self.undone:
                    self._take_back(party, intent)
                    if self._random.random() < _CALLED_OFF:
                        self._call_off(party)

    def stop(self) -> None:
        """Let the caller learn the outcome of what it has sent, and send nothing more."""
        self._stopping.set()

    def new_intent(self, party: Party, *, name: str = "") -> Intent:
        """Think of a send."""
        self._sent += 1
        label = f"{self._number}-{self._sent}{name}"
        chosen = self._random
        low, high = chosen.choices([size for size, _ in _SIZES], [weight for _, weight in _SIZES])[0]
        recipients = chosen.sample(REGISTERED + NOT_YET_REGISTERED, chosen.randint(low, high))
        own_amounts = [chosen.randint(1, 50) for _ in recipients] if chosen.random() < _WITH_ITEMS else None
        return Intent(
            label=label,
            organization_id=party.id,
            sandbox=chosen.random() < _SANDBOX,
            key=None if chosen.random() < _KEYLESS else f"key-{label}",
            recipients=recipients,
            amount=chosen.randint(1, 50),
            atomic=chosen.random() < _ATOMIC,
            own_amounts=own_amounts,
        )

    def _take_back(self, party: Party, intent: Intent) -> None:
        """Take back a batch or a part of it; once more is not more."""
        self._sent += 1
        chosen, reason = self._random, f"undo {self._number}-{self._sent}"
        places = range(len(intent.issued))
        undo = Undo(
            reason=reason,
            of=intent,
            key=None if chosen.random() < _KEYLESS else reason.replace(" ", "-"),
            places=chosen.choice([None, chosen.sample(places, chosen.randint(1, len(places)))]),
            amount=chosen.choice([None, None, 1, 5]),
        )
        self._undoer.reverse(party, undo)

    def _call_off(self, party: Party) -> None:
        """Send without waiting, at once or for later, and call it off at once."""
        intent = self.new_intent(party, name="-off")
        intent.key = None  # Nobody asks again what became of it.
        intent.send_at = (datetime.now(UTC) + _SOON).isoformat() if self._random.random() < _LATER else None
        self._intents.add(intent)
        self.sender.attempt(party, intent, prefer="respond-async")
        if intent.known is Known.ACCEPTED:
            if intent.send_at is not None:
                self._undoer.move(party, intent, (datetime.now(UTC) + 2 * _SOON).isoformat())
            self._undoer.cancel(party, intent)

    def _hold_longer(self, party: Party, intent: Intent) -> None:
        """Move the end of what is held, if it is held still."""
        held = [row.id for row in intent.issued if row.debited and not row.credited]
        if not held:
            return
        body = {"held_until": (datetime.now(UTC) + timedelta(days=2)).isoformat()}
        path, key = f"/v1/transactions/{held[0]}/extend", party.development if intent.sandbox else party.live
        answer = self._answer(lambda: call(self.sender.port, "POST", path, key=key, body=body))
        if answer is not None and answer.status not in (200, 409, 503, *self._intents.of_a_clock_set):
            self._intents.violation(f"the extension of send {intent.label} was answered {answer.status}")
        self._intents.count("extensions")

    def _nothing(self, _party: Party, _intent: Intent) -> None:
        """Most sends are followed by nothing."""

    def _replay(self, party: Party, intent: Intent) -> None:
        """Repeat what was answered: the same answer, to the byte but for nothing."""
        if intent.key is None:
            return
        first = (intent.issued, intent.total, intent.current_balance, intent.created_at, intent.batch_id)
        answer = self._answer(lambda: self.sender.post(party, intent, {}))
        if answer is None or answer.status == 503:
            return
        again = Intent(**{**vars(intent), "issued": []})
        if answer.status == 201:
            again.take(answer)
        same = (again.issued, again.total, again.current_balance, again.created_at, again.batch_id) == first
        if answer.status != 201 or not same or answer.headers.get("Idempotency-Replayed") != "true":
            self._intents.violation(f"send {intent.label} was repeated and answered otherwise ({answer.status})")
        self._intents.count("replays")

    def _send_another_body(self, party: Party, intent: Intent) -> None:
        if intent.key is not None:
            other = self.new_intent(party, name="-other")
            other.key, other.sandbox = intent.key, intent.sandbox
            self._expect_refusal(422, other, lambda: self.sender.post(party, other, {}))

    def _send_a_faulty_body(self, party: Party, _intent: Intent) -> None:
        faulty = self.new_intent(party, name="-faulty")
        faulty.recipients.append("nobody@@example")
        if faulty.own_amounts is not None:
            faulty.own_amounts.append(1)
        self._expect_refusal(400, faulty, lambda: self.sender.post(party, faulty, {}))

    def _send_with_an_unknown_key(self, party: Party, _intent: Intent) -> None:
        stranger = self.new_intent(party, name="-stranger")
        key = party.live[:-1] + ("0" if party.live[-1] != "0" else "1")
        self._expect_refusal(
            401, stranger, lambda: call(self.sender.port, "POST", "/v1/points/send", key=key, body=stranger.body())
        )

    def _expect_refusal(self, status: int, intent: Intent, post: Callable[[], Answer]) -> None:
        intent.known = Known.REFUSED
        self._intents.add(intent)
        answer = self._answer(post)
        if answer is not None and answer.status not in (status, 503):
            self._intents.violation(f"send {intent.label} was answered {answer.status} instead of {status}")
        self._intents.count("refusals on purpose")

    def _look_up_anothers_batch(self, party: Party, intent: Intent) -> None:
        other = self._random.choice([other for other in self._parties.senders if other is not party])
        path = f"/v1/batches/{intent.batch_id}"
        for key in (other.live, other.development, party.live if intent.sandbox else party.development):
            answer = self._answer(lambda key=key: call(self.sender.port, "GET", path, key=key))  # type: ignore[misc]
            if answer is not None and answer.status not in (404, 503):
                self._intents.violation(f"the batch of send {intent.label} was shown to another: {answer.status}")
            self._intents.count("look-ups of another's batch")

    def _answer(self, post: Callable[[], Answer]) -> Answer | None:
        try:
            return post()
        except (Unsent, Cut):
            return None
