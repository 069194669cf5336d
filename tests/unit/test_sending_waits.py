"""Sending, and the wait for a batch: nobody misses it, nobody outstays a deadline, and nobody is left behind."""

import threading
import time
from collections.abc import Iterator

import pytest

from app.api.places import Places
from app.api.sending import _Member
from app.api.waiting import Waiter
from app.batches import ISSUED, QUEUED
from tests.deadline import TIMEOUT_S, until
from tests.unit.groups import World, broken
from tests.unit.house import acceptance

# No test waits so long: whoever is not woken ends in a failure.
_LONG_S = 2 * TIMEOUT_S


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    imagined = World()
    imagined.put_behind_sending(monkeypatch)
    yield imagined
    imagined.end()
    assert imagined.waiting._waiters == {}, "somebody left and is still waited for"


def test_who_waits_gets_the_rows_of_its_batch_as_they_were_read_by_the_way(world: World) -> None:
    world.call(1, wait_s=_LONG_S)
    until(lambda: world.messages, "the message")
    world.issue(1)
    world.end()
    assert world.results[1] == (acceptance(1), world.pending.rows_of(1))


def test_the_waiters_stand_before_committed_batches_are_submitted_so_that_no_hint_is_missed(world: World) -> None:
    stood: list[list[int]] = []
    world.on_submit = lambda _batch_id: stood.append(sorted(world.waiting._waiters))
    world.outcomes = {number: [acceptance(number, organization_id=8)] for number in (2, 3)}
    world.call_behind_a_held_group(2, 3, wait_s=_LONG_S, recipients=501)  # Too many to be asked for ahead.
    world.open()
    until(lambda: len(stood) == 2, "both messages")
    world.issue(2, 3)
    world.end()
    assert stood[1] == [2, 3]


def test_a_hint_that_comes_before_anybody_waits_is_not_missed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    expect = world.waiting.expect

    def hear_and_expect(batch_id: int, waiter: Waiter) -> bool:
        world.waiting._remember([batch_id])  # As a hint does, from a drain that another process has asked for.
        world.pending.final.add(batch_id)
        return expect(batch_id, waiter)

    monkeypatch.setattr(world.waiting, "expect", hear_and_expect)
    world.call(1, wait_s=_LONG_S)
    world.end()
    assert world.results[1] == (acceptance(1), world.pending.rows_of(1))


def test_a_batch_that_is_issued_before_its_acceptance_was_noticed_is_not_missed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect = world.waiting.expect

    def expect_and_hear(batch_id: int, waiter: Waiter) -> bool:
        was_heard = expect(batch_id, waiter)
        world.issue(batch_id)  # A drain that another process has asked for.
        return was_heard

    monkeypatch.setattr(world.waiting, "expect", expect_and_hear)
    world.call_behind_a_held_group(2, 3, wait_s=_LONG_S)
    world.end()
    assert [world.results[number] for number in (2, 3)] == [
        (acceptance(number), world.pending.rows_of(number)) for number in (2, 3)
    ]


def test_a_hint_that_comes_with_the_message_is_not_missed(world: World) -> None:
    world.on_submit = world.issue
    assert world.send(1, wait_s=_LONG_S)[1] == world.pending.rows_of(1)


def test_a_hint_that_comes_with_a_groups_message_ahead_of_its_commit_is_not_missed(world: World) -> None:
    world.on_submit = lambda _message: world.issue(2, 3)
    world.has_sent(8)
    world.outcomes = {number: [acceptance(number, organization_id=8)] for number in (2, 3)}
    world.call_behind_a_held_group(2, 3, wait_s=_LONG_S)
    world.end()
    assert [world.results[number] for number in (2, 3)] == [
        (acceptance(number, organization_id=8), world.pending.rows_of(number)) for number in (2, 3)
    ]


def test_what_was_heard_of_early_is_read_only_once_the_drains_of_the_others_are_asked_for(world: World) -> None:
    read: list[list[list[int]]] = []
    world.on_submit = lambda _message: read.append(list(world.pending.read))
    world.outcomes = {number: [acceptance(number, organization_id=number)] for number in (2, 3)}
    world.call_behind_a_held_group(2, 3, wait_s=_LONG_S)
    world.issue(2)
    world.let_one_through()
    world.let_one_through()
    until(lambda: 2 in world.results, "the one that was heard of")
    assert read == [[], [], []]
    world.issue(3)
    world.end()
    assert world.results[2] == (acceptance(2, organization_id=2), world.pending.rows_of(2))


def test_a_deadline_that_passes_returns_without_rows(world: World) -> None:
    assert world.send(1, wait_s=0.01) == (acceptance(1), None)


def test_a_batch_that_is_final_already_is_not_waited_for(world: World) -> None:
    known = acceptance(99, status=ISSUED, existed=True)
    world.outcomes = {2: [known], 3: [known]}
    world.call_behind_a_held_group(2, 3, wait_s=_LONG_S)
    world.end()
    assert [world.results[number] for number in (2, 3)] == [(known, None)] * 2


def test_who_waits_for_its_batch_keeps_none_of_its_addresses(world: World) -> None:
    world.call(1, wait_s=_LONG_S, recipients=1_000)
    until(lambda: world.waiting._waiters, "somebody who waits")
    [[waiter]] = world.waiting._waiters.values()
    assert isinstance(waiter, _Member)
    assert (waiter.recipients, waiter.send) == (1_000, None)
    world.issue(1)
    assert world.accepted() == [1]


def test_many_who_wait_for_one_batch_are_all_woken(world: World) -> None:
    world.outcomes = {number: [acceptance(99, existed=True)] for number in (2, 3, 4)}
    world.call_behind_a_held_group(2, 3, 4, wait_s=_LONG_S)
    world.open()
    until(lambda: len(world.waiting._waiters.get(99, [])) == 3, "three waiters")
    world.issue(99)
    assert world.accepted() == [1, 99, 99, 99]


def test_who_goes_at_its_deadline_while_others_of_its_group_are_still_tried_is_not_expected_for_ever(
    world: World,
) -> None:
    world.errors[4] = broken()
    world.call_behind_a_held_group(2, 3, 4, wait_s=0.001)
    for statements in range(2, 6):  # One for all, which fails; then 2, which leads, and 3 are accepted; 4 is held.
        world.let_one_through()
        until(lambda: len(world.groups) == statements, "the next statement")  # noqa: B023
    # Longer than anybody sleeps before it looks up: had 3 been told that it is accepted, it would leave now.
    threading.Event().wait(0.3)
    world.end()
    assert world.waiting._waiters == {}


def test_a_leader_that_fails_after_it_was_accepted_is_left_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the house is on fire")

    monkeypatch.setattr(world.sending, "_ask_for_drains", fail)
    with pytest.raises(RuntimeError, match="on fire"):
        world.send(1, wait_s=_LONG_S)
    assert world.waiting._waiters == {}


def test_who_was_accepted_gets_its_rows_though_asking_for_a_drain_broke_down(world: World) -> None:
    asked: list[int] = []

    def fail(batch_id: int) -> None:
        asked.append(batch_id)
        raise RuntimeError("the queue is on fire")

    world.on_submit = fail
    world.call(1, wait_s=_LONG_S)
    until(lambda: asked, "the message")
    world.issue(1)  # The sweep has brought it.
    world.end()
    assert world.results[1] == (acceptance(1), world.pending.rows_of(1))


def test_nobody_hangs_when_a_waiter_cannot_be_registered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_batch_id: int, _waiter: Waiter) -> None:
        raise RuntimeError("no thread can be started")

    monkeypatch.setattr(world.waiting, "expect", fail)
    world.call_behind_a_held_group(2, 3, 4, wait_s=_LONG_S)
    assert world.accepted() == [1]
    assert all(isinstance(world.error_of(number), RuntimeError) for number in (2, 3, 4))


def test_many_who_come_at_once_are_each_accepted_once_and_get_their_own_rows(world: World) -> None:
    world.on_submit = lambda _batch_id: world.issue(*range(1, 201))

    def come(first: int) -> None:
        for number in range(first, first + 10):
            world.results[number] = world.send(number, wait_s=_LONG_S)

    def keep_hinting() -> None:
        while not is_over.is_set():
            world.waiting.wake(list(world.waiting._waiters.copy()))
            is_over.wait(0.001)

    is_over = threading.Event()
    world.pending.final = set(range(1, 201))
    callers = [threading.Thread(target=come, args=(1 + 10 * number,), daemon=True) for number in range(20)]
    hinting = threading.Thread(target=keep_hinting, daemon=True)
    for thread in (hinting, *callers):
        thread.start()
    for thread in callers:
        thread.join(TIMEOUT_S)
    is_over.set()
    hinting.join(TIMEOUT_S)
    assert sorted(number for group in world.groups for number in group) == list(range(1, 201))
    assert world.results == {number: (acceptance(number), world.pending.rows_of(number)) for number in range(1, 201)}


def test_who_finds_no_place_to_wait_at_is_told_at_once_that_its_batch_is_queued(world: World) -> None:
    world.sending._places = Places(at_most=2, of_an_organization=1)
    world.outcomes[2] = [acceptance(2, organization_id=8)]
    for number in (1, 2):
        world.call(number, wait_s=_LONG_S)
        until(lambda number=number: number in world.waiting._waiters, "a place is taken")
    began = time.monotonic()
    outcome, rows = world.send(3, wait_s=_LONG_S)  # Of the first's organization.
    assert time.monotonic() - began < _LONG_S / 2
    assert (outcome.batch_id, outcome.status, rows) == (3, QUEUED, None)
    world.issue(1, 2)
    until(lambda: {1, 2} <= world.results.keys(), "both are answered")
    world.call(4, wait_s=_LONG_S)
    until(lambda: 4 in world.waiting._waiters, "the place is free again")
    world.issue(4)
    world.end()
    assert world.sending._places._taken == {}
