"""A send asks for its drain while PostgreSQL accepts its batch; a drain that is too early loses nothing.

No beat runs here: what is not asked for again stays queued. A trigger holds commits, to have an order in what comes.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from celery import Celery
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from app import hints, queue
from app.acceptance import IssueRequest, Send
from app.api.sending import Sending, Sent
from app.api.submitting import Job
from app.connections import engine
from app.database import transaction
from app.hints import Hint
from tests.deadline import until
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("many_connections", "broker")


class Front:
    """A front's way of sending, to a broker that keeps what it is given, and the hints that it hears."""

    def __init__(self, sender: Celery) -> None:
        self.sending = Sending()
        self.sending._waiting._not_started = []  # No threads that nobody ends: `hear` takes their steps.
        self.messages: list[tuple[int, int | None]] = []
        self.hints: list[Hint] = []
        self._sender = sender

    def submit(self, organization_id: int, *, batch_id: int | None = None, **_: Any) -> bool:
        self.messages.append((organization_id, batch_id))
        job = {"organization_id": organization_id, "batch_id": batch_id}
        self._sender.send_task(queue.ISSUE, kwargs=job, queue=queue.QUEUE)
        return True

    @contextmanager
    def hears(self) -> Iterator[None]:
        """Hear every hint while the block runs, as the thread of a process does."""
        listens, is_over = threading.Event(), threading.Event()

        def listen() -> None:
            for hint in hints.listen():
                self.sending._submitting.hears_hints(True)
                listens.set()
                if is_over.is_set():
                    return
                if hint is not None:
                    self.hear(hint)

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            assert listens.wait(races.PATIENCE_S)
            yield
        finally:
            is_over.set()
            thread.join(races.PATIENCE_S)

    def hear(self, hint: Hint) -> None:
        self.sending._submitting.hear(hint)
        self.sending._waiting._remember(hint.batch_ids)
        self.sending._waiting.wake(hint.batch_ids)
        self.hints.append(hint)

    def asked_for(self, organization_id: int) -> dict[int, Job]:
        """Return the batches that are committed, and not known to be issued."""
        return self.sending._submitting._asked[organization_id].held

    def send(self, organization_id: int, *, wait_s: float = races.PATIENCE_S) -> Sent:
        with transaction() as connection:
            key_hash = books.key_of(connection, organization_id, False)
        self.sending._lately[key_hash] = organization_id  # It has sent before.
        emails = ["ann@example.com"]
        request = IssueRequest(emails=emails, email_keys=emails, amount=10, atomic=False, label=None)
        return self.sending.send(Send(key_hash, request, None), wait_s=wait_s, request_id="req-1")


@pytest.fixture
def front(sender: Celery, monkeypatch: pytest.MonkeyPatch) -> Front:
    made = Front(sender)
    monkeypatch.setattr("app.queue.submit", made.submit)
    monkeypatch.setattr("app.api.submitting._HELD_BACK_S", races.PATIENCE_S)  # However long a test holds a commit.
    return made


@pytest.fixture
def commits_can_be_held(database: None) -> Iterator[None]:
    with races.at_commit(books.execute, "batches", do=races.WAIT):
        yield


@contextmanager
def _held_commits() -> Iterator[Connection]:
    with engine().connect() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({races.HOLDS_COMMITS})")
        yield connection
        connection.rollback()


def _is_issued(sent: Sent) -> bool:
    assert sent.rows is not None
    return sent.rows[0].status == "issued"


@pytest.mark.usefixtures("commits_can_be_held")
def test_one_message_is_sent_and_before_the_commit(front: Front) -> None:
    organization_id = books.make_organization(100)
    with front.hears(), races.started() as start, _held_commits() as holder:
        sent = start(lambda: front.send(organization_id, wait_s=0))
        until(lambda: bool(front.messages), what="a message, though the batch is not committed")
        assert books.counts() == (0, 0)
        holder.rollback()
        sent.result()
    [(asked_for, number)] = front.messages
    assert asked_for == organization_id
    assert number is not None
    assert number < 0, "it can name no batch yet"


def test_what_is_not_committed_is_not_accepted_though_its_drain_was_asked_for(front: Front) -> None:
    organization_id = books.make_organization(100)
    with (
        front.hears(),
        races.at_commit(books.execute, "batches", do="RAISE EXCEPTION 'not today'"),
        pytest.raises(DBAPIError, match="not today"),
    ):
        front.send(organization_id, wait_s=0)
    assert [asked_for for asked_for, _ in front.messages] == [organization_id]
    assert books.counts() == (0, 0)


@pytest.mark.usefixtures("commits_can_be_held", "worker")
def test_after_a_drain_that_left_before_the_commit_another_is_asked_for(front: Front) -> None:
    organization_id = books.make_organization(100)
    with front.hears(), races.started() as start, _held_commits() as holder:
        sent = start(lambda: front.send(organization_id))
        until(lambda: bool(front.hints), what="a drain has left")
        [(_, asked_for)] = front.messages
        said = Hint(organization_id=organization_id, batch_ids=[], has_left=True, asked_for=asked_for)
        assert front.hints == [said]
        holder.rollback()
        assert _is_issued(sent.result())
    assert len(front.messages) == 2
    assert books.balance_of(organization_id) == 90


@pytest.mark.usefixtures("commits_can_be_held", "worker")
@pytest.mark.parametrize("heard", ["before the commit", "after it"])
def test_after_a_drain_that_left_to_an_owner_who_looked_before_the_commit_another_is_asked_for(
    front: Front, sender: Celery, heard: str
) -> None:
    organization_id = books.make_organization(100)
    owner_has_left = Hint(organization_id=organization_id, batch_ids=[], has_left=True)
    with front.hears(), races.started() as start, _held_commits() as holder, engine().connect() as owner:
        assert races.own_drain(owner, organization_id)
        sent = start(lambda: front.send(organization_id))
        until(lambda: _has_done_one(sender), what="the drain has found its owner and left")
        owner.rollback()
        if heard == "before the commit":
            front.hear(owner_has_left)
            holder.rollback()
        else:
            holder.rollback()
            until(lambda: front.asked_for(organization_id) != {}, what="the send knows that it is committed")
            front.hear(owner_has_left)
        assert _is_issued(sent.result())
    assert len(front.messages) == 2
    assert books.balance_of(organization_id) == 90


def _has_done_one(sender: Celery) -> bool:
    """Tell whether the worker has begun one drain, and is at none."""
    look = sender.control.inspect(timeout=1)
    [stats], [at_work] = (look.stats() or {"": {}}).values(), (look.active() or {"": [None]}).values()
    return stats.get("total", {}).get(queue.ISSUE) == 1 and not at_work
