"""A `Sending` whose PostgreSQL, broker and hints are imagined, and the callers who come to it in threads."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from sqlalchemy.exc import IntegrityError

from app.acceptance import Acceptance, IssueRequest, Send
from app.api.sending import Sending
from app.api.waiting import Rows
from tests.deadline import TIMEOUT_S, until
from tests.unit.house import acceptance
from tests.unit.pending import Pending


def send_of(number: int, *, recipients: int = 1, key_hash: bytes = b"hash") -> Send:
    """Return a send that is known by its number, which is also its amount and the id of its batch."""
    emails = [f"{number}.{place}@example.com" for place in range(recipients)]
    request = IssueRequest(emails=emails, email_keys=emails, amount=number, atomic=False, label=None)
    return Send(key_hash, request, None)


class World:
    """What lies behind `sending`. Each list tells what happened, in order.

    `messages_at_commit` holds for each statement the messages sent until it was committed;
    `outcomes` are those that are not simply a new batch, `errors` what a statement ends with that holds
    a number, `commit_errors` what its commit ends with; while `is_gated`, each statement waits for
    `let_one_through`.
    """

    def __init__(self) -> None:
        self.sending = Sending()
        self.waiting = self.sending._waiting
        self.waiting._not_started = []  # No threads: the test takes their steps.
        self.sending._submitting.hears_hints(True)
        self.pending = Pending()
        self.groups: list[list[int]] = []
        self.leaders: list[str] = []
        self.messages: list[tuple[int, int, int]] = []
        self.messages_at_commit: list[list[tuple[int, int, int]]] = []
        self.noted: list[int] = []
        self.outcomes: dict[int, list[Acceptance | Exception | None]] = {}
        self.errors: dict[int, BaseException] = {}
        self.commit_errors: dict[int, Exception] = {}
        self.note_error: Exception | None = None
        self.on_submit: Callable[[int], object] = lambda _batch_id: None
        self.is_gated = False
        self._permits = threading.Semaphore(0)
        self._callers: list[threading.Thread] = []
        self.results: dict[int, tuple[Acceptance, Rows | None] | BaseException] = {}

    def put_behind_sending(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pending.put_behind_waiting(monkeypatch)
        monkeypatch.setattr("app.acceptance.accept", self._accept)
        monkeypatch.setattr("app.api_keys.note_use", self._note_use)
        monkeypatch.setattr("app.queue.submit", self._submit)
        # The messages that go ahead are known by -1, -2, and so on.
        drawn = itertools.count()
        monkeypatch.setattr("app.api.submitting.secrets", SimpleNamespace(randbits=lambda _bits: next(drawn)))
        monkeypatch.setattr("app.api.accepting.single_statement", self._connection)
        monkeypatch.setattr("app.api.sending.transaction", self._connection)

    @contextmanager
    def _connection(self) -> Iterator[None]:
        yield

    def _accept(self, _connection: None, sends: Sequence[Send]) -> list[Acceptance | Exception | None]:
        numbers = [send.request.amount for send in sends]
        self.groups.append(numbers)
        self.leaders.append(threading.current_thread().name)
        if self.is_gated:
            assert self._permits.acquire(timeout=TIMEOUT_S), "nobody let this group through"
        for number in numbers:
            if number in self.errors:
                raise self.errors[number]
        found = [
            self.outcomes[number].pop(0) if self.outcomes.get(number) else acceptance(number) for number in numbers
        ]
        for number in numbers:
            if number in self.commit_errors:
                raise self.commit_errors[number]
        self.messages_at_commit.append(list(self.messages))
        return found

    def _note_use(self, _connection: None, api_key_id: int) -> None:
        self.noted.append(api_key_id)
        if self.note_error is not None:
            raise self.note_error

    def _submit(self, organization_id: int, *, batch_id: int, recipients: int, request_id: str) -> bool:
        assert request_id
        self.messages.append((organization_id, batch_id, recipients))
        self.on_submit(batch_id)
        return True

    def issue(self, *batch_ids: int) -> None:
        """Let a worker have issued these batches, and its hint be heard."""
        self.pending.final |= set(batch_ids)
        self.waiting._remember(batch_ids)
        self.waiting.wake(batch_ids)

    def send(self, number: int, *, wait_s: float, recipients: int = 1) -> tuple[Acceptance, Rows | None]:
        """Send with the key of the organization that the outcome speaks of."""
        [outcome, *_] = self.outcomes.get(number) or [None]
        key_hash = _key_of(outcome.organization_id if isinstance(outcome, Acceptance) else 7)
        send = send_of(number, recipients=recipients, key_hash=key_hash)
        sent = self.sending.send(send, wait_s=wait_s, request_id=f"req-{number}")
        return sent.acceptance, sent.rows

    def has_sent(self, organization_id: int) -> None:
        """Let an organization have had a batch accepted before, by this process."""
        self.sending._lately[_key_of(organization_id)] = organization_id

    def call(self, number: int, *, wait_s: float = 0, recipients: int = 1) -> None:
        """Have a caller come, in a thread that is named by the number of its send."""

        def work() -> None:
            try:
                self.results[number] = self.send(number, wait_s=wait_s, recipients=recipients)
            except BaseException as error:  # noqa: BLE001  # The test looks at it.
                self.results[number] = error

        caller = threading.Thread(target=work, name=str(number), daemon=True)
        self._callers.append(caller)
        caller.start()

    def call_behind_a_held_group(self, *numbers: int, wait_s: float = 0, recipients: int = 1) -> None:
        """Have the group of caller 1 held in PostgreSQL, and the others come behind it, in order."""
        self.is_gated = True
        self.call(1)
        until(lambda: self.groups, "the first group")
        self.call_in_order(*numbers, wait_s=wait_s, recipients=recipients)

    def call_in_order(self, *numbers: int, wait_s: float = 0, recipients: int = 1) -> None:
        for number in numbers:
            length = len(self.sending._gathering._queue) + 1
            self.call(number, wait_s=wait_s, recipients=recipients)
            until(lambda: len(self.sending._gathering._queue) == length, f"caller {number} in the queue")  # noqa: B023

    def let_one_through(self) -> None:
        self._permits.release()

    def open(self) -> None:
        """Let every statement through, those that wait and those to come."""
        self.is_gated = False
        for _ in range(100):
            self._permits.release()

    def end(self) -> None:
        """See every caller out; none may hang."""
        self.open()
        for caller in self._callers:
            caller.join(TIMEOUT_S)
        assert not any(caller.is_alive() for caller in self._callers), "somebody hangs"

    def accepted(self) -> list[int]:
        """Return the batch ids of the callers who were accepted, once all have left."""
        self.end()
        found = [result[0].batch_id for result in self.results.values() if isinstance(result, tuple)]
        return sorted(found)

    def error_of(self, number: int) -> BaseException:
        """Return what a caller's send ended with, once all have left."""
        self.end()
        error = self.results[number]
        assert isinstance(error, BaseException)
        return error


def _key_of(organization_id: int) -> bytes:
    return f"the key of organization {organization_id}".encode()


def broken() -> IntegrityError:
    """Return the error of a statement that one of its sends has broken."""
    return IntegrityError("INSERT", {}, Exception("a constraint"))
