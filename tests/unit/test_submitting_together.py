"""Web processes of one gunicorn that ask for the drains of one organization: each sees the others' messages."""

import pytest

from app.api.marks import Marks
from app.api.submitting import Submitting
from app.hints import Hint
from tests.unit.test_submitting import Broker, ask, ask_ahead, broker, found_owner, left, stays

__all__ = ["broker"]  # A fixture.


@pytest.fixture
def processes(broker: Broker) -> tuple[Submitting, Submitting]:
    """Return what two processes have asked for, who see each other's marks."""
    marks = Marks()
    processes = Submitting(marks), Submitting(marks)
    for process in processes:
        process.hears_hints(True)
    broker.now += 0.1
    return processes


def all_hear(processes: tuple[Submitting, Submitting], hint: Hint) -> None:
    for process in processes:
        process.hear(hint)


def test_while_one_has_a_message_on_its_way_another_sends_none(
    processes: tuple[Submitting, Submitting], broker: Broker
) -> None:
    one, other = processes
    ask(one, 7, {1: 1})
    ask_ahead(other, 7, 20)
    ask(other, 7, {2: 20})
    ask(other, 7, {3: 30})
    assert broker.messages == [(7, 1, 1)]
    all_hear(processes, stays(1, 2))
    all_hear(processes, left(3))
    assert one.is_idle
    assert other.is_idle
    assert broker.messages == [(7, 1, 1)]


def test_what_the_drain_has_left_behind_is_asked_for_by_each_that_holds_some_of_it(
    processes: tuple[Submitting, Submitting], broker: Broker
) -> None:
    one, other = processes
    ask(one, 7, {1: 1})
    ask(other, 7, {2: 20})
    ask(one, 7, {3: 30})
    other.hear(left(1))
    one.hear(left(1))
    assert broker.messages == [(7, 1, 1), (7, 2, 20), (7, 3, 30)]
    all_hear(processes, left(2, 3, asked_for=2))
    all_hear(processes, left(asked_for=3))
    ask(one, 8, {80: 1})
    ask(other, 8, {81: 1})
    assert broker.messages == [(7, 1, 1), (7, 2, 20), (7, 3, 30), (8, 80, 1)]


def test_a_send_that_comes_after_the_drain_was_heard_to_have_left_is_asked_for_at_once(
    processes: tuple[Submitting, Submitting], broker: Broker
) -> None:
    """The process that has sent the message has not heard of it yet."""
    one, other = processes
    ask(one, 7, {1: 1})
    other.hear(left(1))
    ask(other, 7, {2: 1})
    assert broker.messages == [(7, 1, 1), (7, 2, 1)]


def test_while_the_message_waits_no_drain_that_others_have_asked_for_ends_the_mark(
    processes: tuple[Submitting, Submitting], broker: Broker
) -> None:
    one, other = processes
    ask(one, 7, {1: 1})
    all_hear(processes, left(asked_for=99))
    all_hear(processes, left(asked_for=None))
    all_hear(processes, found_owner(99))
    ask(other, 7, {2: 1})
    assert broker.messages == [(7, 1, 1)]


def test_a_message_of_another_process_that_has_found_an_owner_is_not_relied_on(
    processes: tuple[Submitting, Submitting], broker: Broker
) -> None:
    """The owner may have left, and have been heard of, before this process had a batch to be asked for."""
    one, other = processes
    ask(one, 7, {1: 1})
    ask(other, 7, {2: 1})
    all_hear(processes, found_owner(99))
    assert broker.messages == [(7, 1, 1)]
    all_hear(processes, found_owner())
    assert broker.messages == [(7, 1, 1), (7, 2, 1)]


def test_a_message_that_was_heard_to_have_found_an_owner_is_relied_on_by_nobody_any_more(
    processes: tuple[Submitting, Submitting], broker: Broker
) -> None:
    one, other = processes
    ask(one, 7, {1: 1})
    all_hear(processes, found_owner())
    ask(other, 7, {2: 1})
    assert broker.messages == [(7, 1, 1), (7, 2, 1)]


def test_who_does_not_hear_the_hints_relies_on_nobody(processes: tuple[Submitting, Submitting], broker: Broker) -> None:
    one, other = processes
    other.hears_hints(False)
    ask(one, 7, {1: 1})
    ask(other, 7, {2: 1})
    assert broker.messages == [(7, 1, 1), (7, 2, 1)]


def test_a_message_of_before_a_process_heard_the_hints_is_not_relied_on_by_it(
    processes: tuple[Submitting, Submitting], broker: Broker
) -> None:
    one, other = processes
    other.hears_hints(False)
    ask(one, 7, {1: 1})
    broker.now += 0.1
    other.hears_hints(True)
    ask_ahead(other, 7, 1)
    assert broker.messages == [(7, 1, 1), (7, -1, 1)]
    broker.now += 0.1
    other.hears_hints(True)  # It has all the time.
    ask(one, 8, {3: 1})
    ask(other, 8, {4: 1})
    assert broker.messages == [(7, 1, 1), (7, -1, 1), (8, 3, 1)]


def test_one_that_has_died_is_not_relied_on_for_long(processes: tuple[Submitting, Submitting], broker: Broker) -> None:
    one, other = processes
    ask(one, 7, {1: 1})
    broker.messages.clear()  # It was killed before it could send.
    ask(other, 7, {2: 1})
    broker.now += 0.9
    other.tick()
    assert broker.messages == []
    broker.now += 0.2
    other.tick()
    assert broker.messages == [(7, 2, 1)]


def test_a_mark_of_long_ago_holds_nobody_back(processes: tuple[Submitting, Submitting], broker: Broker) -> None:
    one, other = processes
    ask(one, 7, {1: 1})
    broker.now += 1.1
    ask_ahead(other, 7, 1)
    assert broker.messages == [(7, 1, 1), (7, -1, 1)]


def test_a_message_that_the_broker_did_not_take_is_relied_on_by_nobody(
    processes: tuple[Submitting, Submitting], broker: Broker
) -> None:
    one, other = processes
    broker.is_away = True
    ask(one, 7, {1: 1})
    broker.is_away = False
    ask(other, 7, {2: 1})
    assert broker.messages == [(7, 2, 1)]


def test_a_message_that_was_too_early_for_its_own_batch_serves_the_other_process(
    processes: tuple[Submitting, Submitting], broker: Broker
) -> None:
    one, other = processes
    ask_ahead(one, 7, 1)
    ask(other, 7, {2: 1})
    assert broker.messages == [(7, -1, 1)]
    all_hear(processes, left(2, asked_for=-1))
    assert other.is_idle
    ask(one, 7, {1: 1})
    assert broker.messages == [(7, -1, 1), (7, 1, 1)]
