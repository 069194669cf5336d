"""What a fault may touch: the service, the callers' book of intents, and sends of its own that must be answered."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Row

from app.batches.accept import Acceptance, Send, accept
from app.batches.request import IssueRequest
from app.values.key_hashes import hash_key
from tests.crash.intents import Intent, Intents, Known
from tests.crash.parties import REGISTERED, Parties
from tests.crash.sending import Sender
from tests.crash.service import Service
from tests.deadline import TIMEOUT_S, comes_true
from tests.service.parts import Part


class Scene:
    """The place of one fault; `random` decides its details, and follows from the seed and the fault's number."""

    def __init__(self, service: Service, parties: Parties, intents: Intents) -> None:
        self.service = service
        self.parties = parties
        self.intents = intents
        self.random = random.Random()  # noqa: S311  # It is to be repeated, not secret.
        self.sender = Sender(service.web_port, intents)
        self._sent = 0
        self._lock = threading.Lock()

    def wait_for(self, what: str, happened: Callable[[], object], within_s: float = TIMEOUT_S) -> None:
        """Wait for what makes the fault a fault; that it does not come is a violation like any other."""
        if not comes_true(happened, within_s=within_s):
            self.intents.violation(f"it did not come within {within_s:.0f} s: {what}")

    def lasts(self, low_s: float, high_s: float) -> None:
        """Let the fault last: a time between the two, under load."""
        time.sleep(self.random.uniform(low_s, high_s))

    @contextmanager
    def started_again(self, part: Part) -> Iterator[Part]:
        """Wait, at the end of the block, until the supervisor has started `part` again."""
        deaths = part.deaths
        yield part
        self.wait_for(f"{part.name} died and was started again", lambda: part.deaths > deaths)

    def kill_who_comes_to(self, place: str) -> None:
        """Kill the process that comes to a place with a pause, there: it alone, or with all it belongs to."""
        pauses = self.service.pauses
        self.wait_for(f"a process at {place}", lambda: pauses.process_in(place))
        if (pid := pauses.process_in(place)) is not None:
            if self.random.random() < 0.5:
                os.kill(pid, signal.SIGKILL)
            else:
                os.killpg(os.getpgid(pid), signal.SIGKILL)
        pauses.let_go(place)

    def new_intent(self, *, sandbox: bool = False, recipients: list[str] | None = None, key: bool = True) -> Intent:
        """Think of a small send of the organization that tells whether the service is well."""
        with self._lock:
            self._sent += 1
            label = f"probe-{self._sent}"
        return Intent(
            label=label,
            organization_id=self.parties.probe.id,
            sandbox=sandbox,
            key=f"key-{label}" if key else None,
            recipients=recipients or REGISTERED[:3],
            amount=1,
            atomic=True,
        )

    def send(self, intent: Intent) -> None:
        """Send until the outcome is known: the service must be well, or be so soon."""
        self.sender.send(self.parties.probe, intent)

    def send_is_taken(self) -> None:
        """Send once, without waiting for the issue: it must be answered 201 or 202 though Redis is away."""
        intent = self.new_intent()
        intent.started_at = time.monotonic()
        self.intents.add(intent)
        self.sender.attempt(self.parties.probe, intent, prefer="respond-async")
        if intent.known not in (Known.ISSUED, Known.ACCEPTED):
            self.intents.violation(f"send {intent.label} was not taken while only Redis was away")
        intent.key = None  # Nobody repeats it: it is accepted, and must be final in time like all the others.

    def sends_are_answered(self, *, for_s: float) -> None:
        """Send one after the other for so long: each must be answered 201 at its first try."""
        deadline = time.monotonic() + for_s
        while time.monotonic() < deadline:
            intent = self.new_intent()
            intent.started_at = time.monotonic()
            self.intents.add(intent)
            self.sender.attempt(self.parties.probe, intent)
            if intent.known is not Known.ISSUED:
                self.intents.violation(f"send {intent.label} was {intent.known.value} after its first try")
                intent.key = None  # Nobody repeats it.

    def queue_without_a_message(self) -> None:
        """Accept a batch as a front does that dies before it tells a worker: only the sweep can bring it."""
        intent = self.new_intent(key=False)
        request = IssueRequest(
            emails=intent.recipients,
            email_keys=intent.recipients,
            amount=intent.amount,
            atomic=intent.atomic,
            label=intent.label,
        )
        self.intents.add(intent)
        with self.service.connection() as connection:
            party = self.parties.probe
            key = party.development if intent.sandbox else party.live
            [accepted] = accept(connection, [Send(hash_key(key), request, None)])
        assert isinstance(accepted, Acceptance)
        intent.batch_id = accepted.batch_id
        intent.known = Known.ACCEPTED

    def is_queued(self) -> bool:
        """Tell whether a batch of the probing organization waits."""
        statement = "SELECT 1 FROM batches WHERE status = 'queued' AND organization_id = %(id)s"
        return self.ask(statement, id=self.parties.probe.id) != []

    def ask(self, statement: str, **named: object) -> Sequence[Row[Any]]:
        """Ask the database, past the proxy."""
        with self.service.connection() as connection:
            return connection.exec_driver_sql(statement, named).all()

    @contextmanager
    def flood(self, threads: int = 8) -> Iterator[list[Intent]]:
        """Send without keys and without retries, as fast as answers come, until the block ends or nobody listens."""
        over = threading.Event()
        sent: list[Intent] = []

        def send_on() -> None:
            while not over.is_set():
                intent = self.new_intent(sandbox=True, key=False)
                sent.append(intent)
                self.sender.send(self.parties.probe, intent)
                if intent.known is Known.NOT_SENT:
                    return

        crowd = [threading.Thread(target=send_on, daemon=True) for _ in range(threads)]
        for thread in crowd:
            thread.start()
        try:
            yield sent
        finally:
            over.set()
            for thread in crowd:
                thread.join()
