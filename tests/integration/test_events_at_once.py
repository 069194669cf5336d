"""The event log under drains, claims and refills at once: no gap, cause before effect, and nothing lost to a kill."""

import random
import threading
from collections.abc import Callable
from typing import Any

import orjson
import psutil
import pytest
from celery import Celery

from app import event as log_pages
from app import users
from app.batches.accept import Send, accept
from app.batches.request import IssueRequest
from app.event import Event, render
from app.events import sequencer
from app.ledger.claim import register
from app.ledger.drain import drain
from app.ledger.refill import refill
from app.messaging import jobs
from app.postgres import locks
from app.postgres.database import transaction
from app.scope import Scope
from tests.deadline import TIMEOUT_S, until
from tests.integration import books, races
from tests.integration.logs_of_events import events_of, number_all, rendered, types_of

pytestmark = pytest.mark.usefixtures("many_connections")

# A group is of each of two senders, for each of two organizations.
_GROUP = 20
_USERS = 120


def _follow(organization_id: int, seen: list[Event], is_over: threading.Event) -> None:
    """Read the log as a caller does, who keeps the last sequence, until it is over and read to its end."""
    while True:
        was_over = is_over.is_set()
        found = books.run(
            log_pages.page, Scope(organization_id, sandbox=False), after=seen[-1].sequence if seen else 0, limit=50
        )
        seen += found
        if was_over and not found:
            return


def _send_and_drain(organization_ids: list[int], groups: int, seed: int) -> None:
    order = random.Random(seed)  # noqa: S311  # Its numbers are no secrets.
    for _ in range(groups):
        for organization_id in organization_ids:
            with transaction() as connection:
                key_hash = books.key_of(connection, organization_id)
                accept(connection, [Send(key_hash, _request(order), None) for _ in range(_GROUP)])
        for organization_id in organization_ids:
            drain(organization_id, announce=lambda *_: None)


def _request(order: random.Random) -> IssueRequest:
    emails = [f"{place}@example.com" for place in order.sample(range(_USERS), 2)]
    return IssueRequest(emails=emails, email_keys=emails, amount=1, atomic=False, label=None)


def _register_all() -> None:
    for place in range(_USERS):
        books.run(register, [users.new_user(f"{place}@example.com", "First", "Last")])


def _refill_all(organization_ids: list[int]) -> None:
    for _ in range(100):
        for organization_id in organization_ids:
            books.run(refill, organization_id, 1)


@races.first_of("groups", [10, 40])
def test_events_of_everything_at_once_are_numbered_without_a_gap_and_cause_comes_first(groups: int) -> None:
    organization_ids = [books.make_organization(100_000) for _ in range(2)]
    for organization_id in organization_ids:
        books.make_live_key(organization_id)
    seen: list[list[Event]] = [[] for _ in organization_ids]
    is_over, is_done = threading.Event(), threading.Event()
    followers = [
        threading.Thread(target=_follow, args=(organization_id, found, is_over))
        for organization_id, found in zip(organization_ids, seen, strict=True)
    ]
    sequencers = [threading.Thread(target=_repeat, args=(number_all, is_done)) for _ in range(2)]
    for thread in (*followers, *sequencers):
        thread.start()
    try:
        races.at_once(
            *(lambda seed=seed: _send_and_drain(organization_ids, groups, seed) for seed in range(2)),
            _register_all,
            lambda: _refill_all(organization_ids),
        )
        for organization_id in organization_ids:
            books.drain_all(organization_id)
        books.claim_crossed()
        is_done.set()
        for thread in sequencers:
            thread.join(TIMEOUT_S)
        number_all()  # While another one numbers an organization, this leaves it to that one.
    finally:
        is_done.set()
        is_over.set()
        for thread in (*followers, *sequencers):
            thread.join(TIMEOUT_S)
    assert sum(map(len, seen)) > 4 * _GROUP * groups + 300
    for organization_id, found in zip(organization_ids, seen, strict=True):
        assert [event.sequence for event in found] == list(range(1, len(found) + 1))
        assert len({event.id for event in found}) == len(found)
        assert books.run(log_pages.page, Scope(organization_id, sandbox=False), after=0, limit=10_000) == found
        _require_cause_before_effect([orjson.loads(render(event)) for event in found])
    assert books.breaches() == []


def _repeat(work: Callable[[], object], is_over: threading.Event) -> None:
    while not is_over.is_set():
        work()


def _require_cause_before_effect(events: list[dict[str, Any]]) -> None:
    """What is claimed was issued before, by the sequences; and the balances of what is told follow from each other."""
    issued = {
        event["data"]["batch"]["batch_id"]: event["sequence"] for event in events if event["type"] == "batch.issued"
    }
    claims = [event for event in events if event["type"] == "transaction.claimed"]
    assert claims
    for event in claims:
        for transaction_id in event["data"]["transactions"]:
            assert issued[transaction_id // 131_072] < event["sequence"]
    balance = 0
    for event in events:
        if event["type"] == "batch.issued":
            balance -= event["data"]["batch"]["amount"]
            assert event["data"]["batch"]["current_balance"] == balance
        elif event["type"] == "balance.refilled":
            balance += event["data"]["amount"]
            assert event["data"]["organization"]["balance"] == balance


def test_an_event_that_is_not_committed_holds_no_number_up_and_comes_after_it() -> None:
    organization_id = books.make_organization(100)
    number_all()
    with transaction() as connection:
        refill(connection, organization_id, 1)  # Its event has the lower id.
        books.make_live_key(organization_id)
        assert types_of(organization_id) == ["balance.refilled", "key.created"]
    assert types_of(organization_id) == ["balance.refilled", "key.created", "balance.refilled"]


def test_a_second_sequencer_of_an_organization_leaves_and_those_of_others_do_not_wait() -> None:
    one, other = books.make_organization(100), books.make_organization(100)
    with transaction() as connection:
        assert sequencer.number_events(connection, one) == 1
        with transaction() as beside:
            assert sequencer.number_events(beside, one) == 0
            assert sequencer.number_events(beside, other) == 1
    assert [event["sequence"] for event in events_of(one)] == [1]


def test_a_worker_killed_between_commit_and_numbering_loses_no_event(worker: psutil.Process, sender: Celery) -> None:
    organization_id = books.make_organization(100)
    for place in range(3):
        books.queue_batch(organization_id, [f"{place}@example.com"], 1)
    told = rendered(organization_id)
    with transaction() as connection:
        locks.wait_for(connection, locks.Kind.SEQUENCE, organization_id)
        sender.send_task(jobs.ISSUE, kwargs={"organization_id": organization_id}, queue=jobs.QUEUE)
        until(lambda: books.counts() == (0, 3), "it has issued, and cannot number")
        killed = [worker, *worker.children(recursive=True)]
        for process in killed:
            process.kill()
        psutil.wait_procs(killed, timeout=TIMEOUT_S)
    assert rendered(organization_id) == told == []
    assert books.breaches() == [], "an event that is not numbered yet is no breach"
    events = events_of(organization_id)
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert [event["data"]["batch"]["batch_id"] for event in events if event["type"] == "batch.issued"] == [1, 2, 3]
    assert books.breaches() == []
