"""Callers: threads that send, repeat, mistake and look up without end, whatever happens to the service."""

import contextlib
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.crash.actor import Actor
from tests.crash.calls import Answer, Cut, Unsent
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


class Caller(Actor):
    """One caller; what it does follows from the seed, when it does it does not."""

    def __init__(self, number: int, seed: str, port: int, parties: Parties, intents: Intents) -> None:
        self._random = random.Random(f"{seed} caller {number}")  # noqa: S311  # It is to be repeated, not secret.
        super().__init__(f"caller{number}", lambda: self._random.uniform(*_THINKS_S))
        self._number = number
        self._parties = parties
        self._intents = intents
        self.sender = Sender(port, intents)
        self.undone = UNDONE
        self._undoer = Undoer(self.sender, intents)
        self.is_ahead: Callable[[], bool] = lambda: False
        self._sent = 0
        self._extras = (self._nothing,) * 5 + (
            self._replay,
            self._replay,
            self._send_another_body,
            self._send_a_faulty_body,
            self._hold_longer,
        )

    def act(self) -> None:
        if self.is_ahead() and self._random.random() > _PACE_AHEAD:
            return
        party = self._random.choice(self._parties.senders)
        intent = self.new_intent(party)
        self.sender.send(party, intent, prefer="respond-async" if self._random.random() < _ASYNC else "")
        if intent.known is Known.ISSUED:
            self._random.choice(self._extras)(party, intent)
            while self._random.random() < self.undone:
                self._take_back(party, intent)
                if self._random.random() < _CALLED_OFF:
                    self._call_off(party)

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
        answer = self.sender.ask(party, intent.sandbox, "POST", f"/v1/transactions/{held[0]}/extend", body)
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
        answer = self._sent_once(party, intent)
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
            self._expect_refusal(422, party, other)

    def _send_a_faulty_body(self, party: Party, _intent: Intent) -> None:
        faulty = self.new_intent(party, name="-faulty")
        faulty.recipients.append("nobody@@example")
        if faulty.own_amounts is not None:
            faulty.own_amounts.append(1)
        self._expect_refusal(400, party, faulty)

    def _expect_refusal(self, status: int, party: Party, intent: Intent) -> None:
        intent.known = Known.REFUSED
        self._intents.add(intent)
        answer = self._sent_once(party, intent)
        if answer is not None and answer.status not in (status, 503):
            self._intents.violation(f"send {intent.label} was answered {answer.status} instead of {status}")
        self._intents.count("refusals on purpose")

    def _sent_once(self, party: Party, intent: Intent) -> Answer | None:
        with contextlib.suppress(Unsent, Cut):
            return self.sender.post(party, intent)
        return None
