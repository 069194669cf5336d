"""Sends that come together: each gets its own outcome, whatever becomes of its group or of its leader."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from app.acceptance import Acceptance, IssueRequest, Send
from app.api import sending as module
from app.api.sending import Sending, Sent
from app.errors import IdempotencyKeyReused, InvalidKey, OrganizationDisabled, PointsError
from tests.unit import house
from tests.unit.deadline import TIMEOUT_S, until

_Outcome = Acceptance | PointsError | None

BAD_KEY, REUSED, DISABLED, POISON, CRASH, TAKEN = "bad", "reused", "disabled", "poison", "crash", "taken"
_REFUSALS: dict[str, PointsError] = {
    BAD_KEY: InvalidKey(),
    REUSED: IdempotencyKeyReused(),
    DISABLED: OrganizationDisabled(),
}


class Database:
    """What accepts, imagined: what becomes of a send stands in its label. `open` lets it go on."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.open = threading.Event()
        self.open.set()
        self.is_away = False
        self._taken_once: set[str] = set()

    @contextmanager
    def single_statement(self) -> Iterator[None]:
        yield

    def accept(self, _connection: None, sends: Sequence[Send]) -> list[_Outcome]:
        labels = [send.request.label or "" for send in sends]
        self.groups.append(labels)
        assert self.open.wait(TIMEOUT_S)
        if self.is_away:
            raise OperationalError("INSERT", {}, Exception("away"))
        if CRASH in labels:
            raise ZeroDivisionError
        if POISON in labels:
            raise IntegrityError("INSERT", {}, Exception("one of them"))
        return [self._outcome(label) for label in labels]

    def _outcome(self, label: str) -> _Outcome:
        if label in _REFUSALS:
            return _REFUSALS[label]
        if label == TAKEN and label not in self._taken_once:
            self._taken_once.add(label)
            return None
        return house.acceptance(100 if label == TAKEN else int(label))


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    database = Database()
    monkeypatch.setattr(module, "single_statement", database.single_statement)
    monkeypatch.setattr("app.acceptance.accept", database.accept)
    monkeypatch.setattr("app.queue.submit", lambda *_, **__: True)
    return database


@pytest.fixture
def sending(database: Database, monkeypatch: pytest.MonkeyPatch) -> Sending:
    """Give the sends of a process without its threads: nothing but the acceptance is of interest."""
    sending = Sending()
    monkeypatch.setattr(sending._waiting, "start", lambda: None)
    return sending


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(80) as callers:
        yield callers


def _send(label: str, *, recipients: int = 1) -> Send:
    emails = ["a@example.com"] * recipients
    request = IssueRequest(emails=emails, email_keys=emails, amount=1, atomic=False, label=label)
    return Send(b"hash", request, None)


@pytest.fixture
def come_together(
    sending: Sending, database: Database, callers: ThreadPoolExecutor
) -> Callable[..., dict[str, Future[Sent]]]:
    """Let sends come while the database is busy with another one: they are its next groups."""

    def come(*labels: str, recipients: int = 1) -> dict[str, Future[Sent]]:
        def send(label: str) -> Future[Sent]:
            before = len(sending._queue)
            future = callers.submit(sending.send, _send(label, recipients=recipients), wait_s=0, request_id=label)
            until(lambda: len(sending._queue) > before, "it is queued")
            return future

        database.open.clear()
        first = callers.submit(sending.send, _send("1"), wait_s=0, request_id="1")
        try:
            until(lambda: database.groups == [["1"]], "the first is being accepted")
            futures = {label: send(label) for label in labels}
        finally:
            database.open.set()
        assert first.result(TIMEOUT_S).acceptance.batch_id == 1
        return futures

    return come


def _become(future: Future[Sent]) -> int | type[BaseException]:
    error = future.exception(TIMEOUT_S)
    return future.result().acceptance.batch_id if error is None else type(error)


def test_a_send_alone_is_accepted_at_once_and_waits_for_nobody(sending: Sending, database: Database) -> None:
    for label in ("5", "6"):
        assert sending.send(_send(label), wait_s=0, request_id="").acceptance.batch_id == int(label)
    assert database.groups == [["5"], ["6"]]


def test_what_comes_while_the_database_is_busy_is_accepted_together_in_order(
    come_together: Callable[..., dict[str, Future[Sent]]], database: Database
) -> None:
    futures = come_together(*map(str, range(2, 30)))
    assert {label: _become(future) for label, future in futures.items()} == {str(n): n for n in range(2, 30)}
    assert database.groups == [["1"], [str(n) for n in range(2, 30)]]


def test_a_group_has_no_more_sends_and_no_more_recipients_than_a_statement_shall_have(
    come_together: Callable[..., dict[str, Future[Sent]]], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TOGETHER_MAX", 4)
    monkeypatch.setattr(module, "_RECIPIENTS_TOGETHER_MAX", 10)
    futures = come_together("2", "3", "4", "5", "6", "7", "8", recipients=4)
    assert [_become(future) for future in futures.values()] == [2, 3, 4, 5, 6, 7, 8]
    assert database.groups == [["1"], ["2", "3"], ["4", "5"], ["6", "7"], ["8"]]


def test_nobody_is_refused_for_what_another_of_the_group_has_done(
    come_together: Callable[..., dict[str, Future[Sent]]],
) -> None:
    futures = come_together("2", BAD_KEY, "3", REUSED, DISABLED, "4")
    assert [_become(future) for future in futures.values()] == [
        2, InvalidKey, 3, IdempotencyKeyReused, OrganizationDisabled, 4,
    ]  # fmt: skip


def test_a_send_at_which_the_statement_fails_harms_only_itself(
    come_together: Callable[..., dict[str, Future[Sent]]], database: Database
) -> None:
    futures = come_together("2", POISON, "3")
    assert [_become(future) for future in futures.values()] == [2, IntegrityError, 3]
    assert database.groups == [["1"], ["2", POISON, "3"], ["2"], [POISON], ["3"]]


def test_a_send_whose_idempotency_key_was_taken_in_this_moment_asks_again(
    come_together: Callable[..., dict[str, Future[Sent]]], database: Database
) -> None:
    futures = come_together("2", TAKEN)
    assert [_become(future) for future in futures.values()] == [2, 100]
    assert database.groups == [["1"], ["2", TAKEN], [TAKEN]]


def test_a_leader_that_fails_leaves_nobody_waiting_and_the_next_group_is_led(
    sending: Sending, come_together: Callable[..., dict[str, Future[Sent]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TOGETHER_MAX", 3)
    futures = come_together("2", CRASH, "3", "4", "5")
    assert [_become(future) for future in futures.values()] == [ZeroDivisionError, RuntimeError, RuntimeError, 4, 5]
    assert sending.send(_send("6"), wait_s=0, request_id="").acceptance.batch_id == 6


def test_a_database_that_is_away_is_asked_once_for_a_group_and_again_when_it_is_back(
    sending: Sending, database: Database, come_together: Callable[..., dict[str, Future[Sent]]]
) -> None:
    futures = come_together("2")
    assert _become(futures["2"]) == 2
    database.is_away = True
    with pytest.raises(OperationalError):
        sending.send(_send("3"), wait_s=0, request_id="")
    database.is_away = False
    assert sending.send(_send("4"), wait_s=0, request_id="").acceptance.batch_id == 4
    assert database.groups == [["1"], ["2"], ["3"], ["4"]]


def test_nothing_is_left_behind_of_a_send_whose_wait_has_run_out(sending: Sending) -> None:
    sent = sending.send(_send("7"), wait_s=0.01, request_id="")
    assert (sent.acceptance.batch_id, sent.rows) == (7, None)
    assert sending._waiting._waiters == {}
    assert not sending._is_led
