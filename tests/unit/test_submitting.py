"""Asking for drains: one message for many sends, and none that is not needed."""

import itertools
from types import SimpleNamespace

import pytest

from app.api.submitting import Job, Submitting
from app.hints import Hint


class Broker:
    """The queue, imagined, and a clock that a test moves; it writes down each message."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, int, int]] = []
        self.is_away = False
        self.attempts = 0
        self.now = 1_000.0

    def submit(self, organization_id: int, *, batch_id: int, recipients: int, request_id: str) -> bool:
        self.attempts += 1
        if self.is_away:
            self.now += 0.3  # An attempt costs its time limit.
            return False
        self.messages.append((organization_id, batch_id, recipients))
        return True


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    imagined = Broker()
    monkeypatch.setattr("app.queue.submit", imagined.submit)
    drawn = itertools.count()  # So that the messages that go ahead are known by -1, -2, and so on.
    monkeypatch.setattr("app.api.submitting.secrets", SimpleNamespace(randbits=lambda _bits: next(drawn)))
    monkeypatch.setattr("app.api.submitting.time", SimpleNamespace(monotonic=lambda: imagined.now))
    return imagined


@pytest.fixture
def submitting(broker: Broker) -> Submitting:
    made = Submitting()
    made.hears_hints(True)
    return made


def ask(submitting: Submitting, organization_id: int, batches: dict[int, int], *, was_ahead: bool = False) -> None:
    """Ask for batches (id: recipients)."""
    jobs = {number: Job(count, f"req-{number}") for number, count in batches.items()}
    submitting.ask(organization_id, jobs, was_ahead=was_ahead)


def ask_ahead(submitting: Submitting, organization_id: int, recipients: int) -> bool:
    return submitting.ask_ahead(organization_id, Job(recipients, "req-ahead"))


def left(*batch_ids: int, asked_for: int | None = 1, organization_id: int = 7) -> Hint:
    """Say that a drain has issued these batches and left; its message named batch `asked_for`."""
    return Hint(organization_id=organization_id, batch_ids=list(batch_ids), has_left=True, asked_for=asked_for)


def stays(*batch_ids: int) -> Hint:
    return Hint(organization_id=7, batch_ids=list(batch_ids), has_left=False, asked_for=1)


def found_owner(asked_for: int = 1) -> Hint:
    return Hint(organization_id=7, batch_ids=[], has_left=False, found_owner=True, asked_for=asked_for)


def test_one_message_asks_for_many_batches_and_counts_their_recipients(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {3: 1, 4: 10, 5: 100})
    assert broker.messages == [(7, 3, 111)]


def test_what_comes_while_a_drain_is_asked_for_is_held_back_until_the_drain_has_left(
    submitting: Submitting, broker: Broker
) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 20})
    ask(submitting, 7, {3: 30})
    submitting.hear(stays(1))
    assert broker.messages == [(7, 1, 1)]
    submitting.hear(left())
    assert broker.messages == [(7, 1, 1), (7, 2, 50)]


def test_what_the_drain_has_issued_is_not_asked_for_again(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 20, 3: 30, 4: 40})
    submitting.hear(stays(1, 2))
    submitting.hear(left(4))
    assert broker.messages == [(7, 1, 1), (7, 3, 30)]


def test_a_drain_that_left_nothing_behind_is_not_asked_for_again(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 1})
    submitting.hear(left(1, 2))
    assert broker.messages == [(7, 1, 1)]
    assert submitting.is_idle


def test_after_a_drain_has_left_the_next_send_is_asked_for_at_once(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {1: 1})
    submitting.hear(left(1))
    ask(submitting, 7, {2: 1})
    assert broker.messages == [(7, 1, 1), (7, 2, 1)]


def test_the_message_for_what_was_held_back_holds_back_in_its_turn(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 1})
    submitting.hear(left(1))
    ask(submitting, 7, {3: 1})
    assert broker.messages == [(7, 1, 1), (7, 2, 1)]
    submitting.hear(left(2, asked_for=2))
    assert broker.messages == [(7, 1, 1), (7, 2, 1), (7, 3, 1)]


@pytest.mark.parametrize("asked_for", [99, None])
def test_while_our_message_is_on_its_way_no_drain_of_another_brings_a_second_one(
    submitting: Submitting, broker: Broker, asked_for: int | None
) -> None:
    ask(submitting, 7, {1: 1})
    for batch_id in range(2, 20):
        ask(submitting, 7, {batch_id: 1})
        submitting.hear(left(batch_id - 1, asked_for=asked_for))
        submitting.hear(found_owner(99))
    assert broker.messages == [(7, 1, 1)]
    submitting.hear(left())
    assert broker.messages == [(7, 1, 1), (7, 19, 1)]


def test_a_message_that_has_found_an_owner_relies_on_it_until_it_has_left(
    submitting: Submitting, broker: Broker
) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 1})
    submitting.hear(found_owner())
    ask(submitting, 7, {3: 1})
    assert broker.messages == [(7, 1, 1)]
    submitting.hear(left(1, 2, asked_for=99))
    assert broker.messages == [(7, 1, 1), (7, 3, 1)]


def test_what_an_owner_has_issued_is_not_asked_for_again(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 1})
    submitting.hear(found_owner())
    submitting.hear(left(1, 2, asked_for=99))
    assert submitting.is_idle
    assert broker.messages == [(7, 1, 1)]


def test_an_owner_that_is_heard_to_have_left_before_it_was_found_is_not_relied_on(
    submitting: Submitting, broker: Broker
) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 1})
    submitting.hear(left(asked_for=99))
    submitting.hear(found_owner())
    assert broker.messages == [(7, 1, 1), (7, 2, 1)]


def test_an_owner_that_is_not_heard_of_again_is_not_relied_on_for_long(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 1})
    submitting.hear(found_owner())
    broker.now += 1.1
    submitting.tick()
    assert broker.messages == [(7, 1, 1), (7, 2, 1)]


def test_a_hint_of_another_organization_changes_nothing(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 1})
    submitting.hear(left(2, organization_id=8))
    assert broker.messages == [(7, 1, 1)]
    submitting.hear(left(1))
    assert broker.messages == [(7, 1, 1), (7, 2, 1)]


def test_organizations_do_not_hold_each_other_back(submitting: Submitting, broker: Broker) -> None:
    for organization_id in (7, 8, 9):
        ask(submitting, organization_id, {organization_id * 10: 1})
    ask(submitting, 8, {81: 1})
    submitting.hear(left(80, asked_for=80, organization_id=8))
    assert broker.messages == [(7, 70, 1), (8, 80, 1), (9, 90, 1), (8, 81, 1)]


def test_what_is_held_back_too_long_is_asked_for_again(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 2})
    submitting.tick()
    assert broker.messages == [(7, 1, 1)]
    broker.now += 1.1
    submitting.tick()
    submitting.tick()
    assert broker.messages == [(7, 1, 1), (7, 2, 2)]
    assert not submitting.is_idle


def test_nothing_is_asked_again_when_nothing_was_held_back(submitting: Submitting, broker: Broker) -> None:
    ask(submitting, 7, {1: 1})
    assert not submitting.is_idle
    broker.now += 1.1
    submitting.tick()
    assert broker.messages == [(7, 1, 1)]
    assert submitting.is_idle


def test_a_send_that_comes_after_the_time_takes_along_what_was_held_back(
    submitting: Submitting, broker: Broker
) -> None:
    ask(submitting, 7, {1: 1})
    ask(submitting, 7, {2: 20})
    broker.now += 1.1
    ask(submitting, 7, {3: 30})  # Before the tick that was due.
    submitting.tick()
    assert broker.messages == [(7, 1, 1), (7, 2, 50)]


def test_what_is_asked_for_ahead_is_asked_for_once(submitting: Submitting, broker: Broker) -> None:
    for batch_id in (1, 2, 3):
        assert ask_ahead(submitting, 7, 10)
        assert len(broker.messages) == batch_id
        ask(submitting, 7, {batch_id: 10}, was_ahead=True)
        submitting.hear(left(batch_id, asked_for=-batch_id))
        assert submitting.is_idle
    assert broker.messages == [(7, -1, 10), (7, -2, 10), (7, -3, 10)]


def test_what_was_asked_for_ahead_and_never_committed_is_forgotten(submitting: Submitting, broker: Broker) -> None:
    ask_ahead(submitting, 7, 10)
    broker.now += 1.1
    submitting.tick()
    assert submitting.is_idle
    assert broker.messages == [(7, -1, 10)]


def test_after_a_drain_that_was_too_early_another_is_asked_for_and_none_ahead_for_a_while(
    submitting: Submitting, broker: Broker
) -> None:
    ask_ahead(submitting, 7, 10)
    submitting.hear(left(asked_for=-1))  # Before the commit: nothing can be asked for yet.
    assert broker.messages == [(7, -1, 10)]
    ask(submitting, 7, {1: 10}, was_ahead=True)
    submitting.hear(left(1))
    assert broker.messages == [(7, -1, 10), (7, 1, 10)]
    assert not ask_ahead(submitting, 7, 10)
    assert not ask_ahead(submitting, 8, 10)
    assert broker.messages == [(7, -1, 10), (7, 1, 10)]
    broker.now += 1.1
    assert ask_ahead(submitting, 7, 10)
    assert broker.messages == [(7, -1, 10), (7, 1, 10), (7, -2, 10)]


def test_a_drain_that_is_heard_of_before_its_batches_are_asked_for_was_not_too_early(
    submitting: Submitting, broker: Broker
) -> None:
    ask_ahead(submitting, 7, 20)
    submitting.hear(Hint(7, [1], has_left=False, asked_for=-1))
    submitting.hear(left(2, asked_for=-1))
    ask(submitting, 7, {1: 10, 2: 10}, was_ahead=True)
    assert submitting.is_idle
    assert ask_ahead(submitting, 8, 30)
    assert broker.messages == [(7, -1, 20), (8, -2, 30)]


def test_a_drain_that_was_too_early_for_some_is_followed_by_one_for_them_alone(
    submitting: Submitting, broker: Broker
) -> None:
    ask_ahead(submitting, 7, 20)
    submitting.hear(left(1, asked_for=-1))
    ask(submitting, 7, {1: 10, 2: 10}, was_ahead=True)
    assert broker.messages == [(7, -1, 20), (7, 2, 10)]


def test_a_batch_that_is_heard_of_before_it_is_asked_for_is_not_held_back(
    submitting: Submitting, broker: Broker
) -> None:
    ask_ahead(submitting, 7, 10)
    submitting.hear(Hint(7, [1], has_left=False, asked_for=-1))
    ask(submitting, 7, {1: 10}, was_ahead=True)
    submitting.hear(left(asked_for=-1))
    assert submitting.is_idle
    assert broker.messages == [(7, -1, 10)]


def test_a_drain_that_was_too_early_is_followed_at_once_by_one_for_what_others_have_committed(
    submitting: Submitting, broker: Broker
) -> None:
    ask_ahead(submitting, 7, 10)
    ask(submitting, 7, {2: 20})  # Of another group, whose leader has come from PostgreSQL sooner.
    submitting.hear(left(asked_for=-1))
    assert broker.messages == [(7, -1, 10), (7, 2, 20)]
    ask(submitting, 7, {1: 10}, was_ahead=True)
    submitting.hear(left(1, 2, asked_for=2))
    assert submitting.is_idle
    assert broker.messages == [(7, -1, 10), (7, 2, 20)]


def test_a_drain_that_was_too_early_is_followed_by_one_for_whoever_asks_first(
    submitting: Submitting, broker: Broker
) -> None:
    ask_ahead(submitting, 7, 10)
    submitting.hear(left(asked_for=-1))
    ask(submitting, 7, {2: 20})
    assert broker.messages == [(7, -1, 10), (7, 2, 20)]
    assert ask_ahead(submitting, 8, 30), "it was not for that one that the drain began"


def test_a_drain_that_has_issued_what_it_was_asked_for_and_what_others_have_committed_is_followed_by_none(
    submitting: Submitting, broker: Broker
) -> None:
    ask_ahead(submitting, 7, 10)
    ask(submitting, 7, {2: 20})
    submitting.hear(left(1, 2, asked_for=-1))
    ask(submitting, 7, {1: 10}, was_ahead=True)
    assert submitting.is_idle
    assert broker.messages == [(7, -1, 10)]


def test_who_hears_no_hints_asks_for_nothing_ahead(submitting: Submitting, broker: Broker) -> None:
    submitting.hears_hints(False)
    assert not ask_ahead(submitting, 7, 10)
    ask(submitting, 7, {1: 10})
    assert broker.messages == [(7, 1, 10)]


def test_a_drain_that_was_too_early_and_is_heard_of_after_the_commit_is_followed_by_another(
    submitting: Submitting, broker: Broker
) -> None:
    ask_ahead(submitting, 7, 10)
    ask(submitting, 7, {1: 10}, was_ahead=True)
    submitting.hear(left(asked_for=-1))
    assert broker.messages == [(7, -1, 10), (7, 1, 10)]


def test_a_drain_that_was_asked_for_ahead_and_is_not_heard_of_is_asked_for_again(
    submitting: Submitting, broker: Broker
) -> None:
    ask_ahead(submitting, 7, 10)
    ask(submitting, 7, {1: 10}, was_ahead=True)
    broker.now += 1.1
    submitting.tick()
    assert broker.messages == [(7, -1, 10), (7, 1, 10)]


@pytest.mark.parametrize("is_heard_first", [False, True])
def test_a_drain_that_was_asked_for_in_vain_was_not_too_early(
    submitting: Submitting, broker: Broker, is_heard_first: bool
) -> None:
    ask_ahead(submitting, 7, 10)
    if is_heard_first:
        submitting.hear(left(asked_for=-1))
    ask(submitting, 7, {}, was_ahead=True)  # The idempotency key named a batch, or PostgreSQL was away.
    if not is_heard_first:
        submitting.hear(left(asked_for=-1))
    assert submitting.is_idle
    assert ask_ahead(submitting, 7, 10)
    assert broker.messages == [(7, -1, 10), (7, -2, 10)]


def test_nothing_is_asked_for_ahead_while_a_drain_of_the_organization_is(
    submitting: Submitting, broker: Broker
) -> None:
    ask(submitting, 7, {1: 10})
    assert not ask_ahead(submitting, 7, 20)
    assert ask_ahead(submitting, 8, 30)
    assert broker.messages == [(7, 1, 10), (8, -1, 30)]
    ask(submitting, 7, {2: 20})
    submitting.hear(left(1))
    assert broker.messages == [(7, 1, 10), (8, -1, 30), (7, 2, 20)]


def test_a_broker_that_did_not_take_the_last_message_is_given_none_ahead(
    submitting: Submitting, broker: Broker
) -> None:
    broker.is_away = True
    ask_ahead(submitting, 7, 1)
    ask(submitting, 7, {1: 1})
    broker.now += 1.1
    ask_ahead(submitting, 8, 1)
    assert broker.attempts == 1
    broker.is_away = False
    ask(submitting, 8, {2: 1})
    ask_ahead(submitting, 9, 1)
    submitting.tick()
    assert broker.messages == [(8, 2, 1), (9, -2, 1), (7, 1, 1)]


def test_a_broker_that_is_away_is_left_alone_for_a_while_and_then_asked_again(
    submitting: Submitting, broker: Broker
) -> None:
    broker.is_away = True
    ask(submitting, 7, {1: 1})
    for batch_id in range(2, 10):
        broker.now += 0.11
        ask(submitting, 7, {batch_id: 1})
        submitting.tick()
    assert broker.attempts == 1
    broker.is_away = False
    broker.now += 1
    submitting.tick()
    assert broker.messages == [(7, 1, 9)]


def test_many_organizations_do_not_each_try_a_broker_that_is_away(submitting: Submitting, broker: Broker) -> None:
    broker.is_away = True
    for organization_id in range(100):
        ask(submitting, organization_id, {organization_id: 1})
    assert broker.attempts == 1
    broker.now += 1.1
    submitting.tick()
    assert broker.attempts == 2
    broker.is_away = False
    broker.now += 1.1
    submitting.tick()
    assert sorted(broker.messages) == [(number, number, 1) for number in range(100)]


def test_what_a_drain_issues_while_the_broker_is_away_is_not_asked_for(submitting: Submitting, broker: Broker) -> None:
    broker.is_away = True
    ask(submitting, 7, {1: 1, 2: 1})
    submitting.hear(left(1, 2))
    assert submitting.is_idle
    broker.is_away = False
    broker.now += 1.1
    submitting.tick()
    assert broker.messages == []


def test_a_hint_that_comes_while_the_message_is_on_its_way_loses_nothing(
    submitting: Submitting, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(organization_id: int, *, batch_id: int, recipients: int, request_id: str) -> bool:
        submitting.hear(left(asked_for=99))  # An earlier drain, asked for by another process.
        return broker.submit(organization_id, batch_id=batch_id, recipients=recipients, request_id=request_id)

    monkeypatch.setattr("app.queue.submit", submit)
    broker.is_away = True
    ask(submitting, 7, {1: 1})
    assert not submitting.is_idle  # It was not taken, so it is still to be asked for.
    broker.is_away = False
    broker.now += 1.1
    submitting.tick()
    assert broker.messages == [(7, 1, 1)]


def test_whatever_goes_wrong_with_a_message_fails_no_caller_and_is_tried_again(
    submitting: Submitting, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_: object, **__: object) -> bool:
        raise RuntimeError("nobody thought of this")

    with monkeypatch.context() as patch:
        patch.setattr("app.queue.submit", break_down)
        ask(submitting, 7, {1: 2})
    broker.now += 60
    submitting.tick()
    assert broker.messages == [(7, 1, 2)]


def test_a_broker_that_is_away_for_long_fills_no_memory_and_the_newest_batches_are_still_asked_for(
    submitting: Submitting, broker: Broker
) -> None:
    broker.is_away = True
    for number in range(5_000):
        ask(submitting, 7, {number: 1})
    assert len(submitting._asked[7].held) == 1_000
    broker.is_away, broker.now = False, broker.now + 10
    submitting.tick()
    assert broker.messages == [(7, 4_000, 1_000)]
