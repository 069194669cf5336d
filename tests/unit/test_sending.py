"""Sending in groups: who leads, who follows, and that one send's fault is no other's."""

from collections.abc import Iterator

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.api import gathering
from app.api.waiting import Waiter
from app.errors import InvalidKey, OrganizationDisabled
from tests.deadline import until
from tests.unit.groups import World, broken
from tests.unit.house import acceptance


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    imagined = World()
    imagined.put_behind_sending(monkeypatch)
    yield imagined
    imagined.end()
    assert imagined.waiting._waiters == {}, "somebody left and is still waited for"
    left = imagined.sending._gathering
    assert (left._queue, left._is_led, left._present) == ([], False, 0)


def away() -> OperationalError:
    return OperationalError("INSERT", {}, Exception("away"))


def test_who_comes_alone_leads_itself_and_without_a_wait_never_sleeps(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Waiter, "sleep")
    for number in (1, 2):
        outcome, rows = world.send(number, wait_s=0)
        assert (outcome.batch_id, rows) == (number, None)
    assert world.groups == [[1], [2]]
    assert world.messages == [(7, 1, 1)]  # The second is held back: the drain is asked for already.


def test_who_come_while_a_group_is_accepted_form_the_next_in_order_and_each_leader_leads_once(world: World) -> None:
    world.call_behind_a_held_group(2, 3, 4)
    world.let_one_through()
    until(lambda: len(world.groups) == 2, "the second group")
    world.call_in_order(5, 6)
    assert world.accepted() == [1, 2, 3, 4, 5, 6]
    assert world.groups == [[1], [2, 3, 4], [5, 6]]
    assert world.leaders == ["1", "2", "5"]


def test_a_group_has_so_many_sends_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_TOGETHER_MAX", 3)
    world.call_behind_a_held_group(2, 3, 4, 5, 6)
    assert world.accepted() == [1, 2, 3, 4, 5, 6]
    assert world.groups == [[1], [2, 3, 4], [5, 6]]


def test_a_group_has_so_many_recipients_and_no_more_but_one_send_always_fits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "_RECIPIENTS_TOGETHER_MAX", 10)
    world.call_behind_a_held_group(2, 3, recipients=5)
    world.call_in_order(4)
    world.call_in_order(5, recipients=11)
    world.call_in_order(6)
    world.accepted()
    assert world.groups == [[1], [2, 3], [4], [5], [6]]


def test_a_send_that_breaks_the_statement_harms_only_itself(world: World) -> None:
    world.errors[3] = broken()
    world.call_behind_a_held_group(2, 3, 4)
    assert world.accepted() == [1, 2, 4]
    assert world.error_of(3) is world.errors[3]
    assert world.groups == [[1], [2, 3, 4], [2], [3], [4]]
    asked = {batch_id for _, batch_id, _ in world.messages} | set(world.sending._submitting._asked[7].held)
    assert asked == {1, 2, 4}


def test_a_send_that_breaks_the_statement_alone_is_not_tried_again(world: World) -> None:
    world.errors[1] = broken()
    world.call(1)
    assert world.error_of(1) is world.errors[1]
    assert world.groups == [[1]]


@pytest.mark.parametrize("error", [away(), PoolTimeout("no connection")], ids=["away", "no connection"])
def test_postgresql_away_is_everybodys_error_at_once(world: World, error: Exception) -> None:
    world.errors[3] = error
    world.call_behind_a_held_group(2, 3, 4)
    assert [world.error_of(number) for number in (2, 3, 4)] == [error] * 3
    assert world.groups == [[1], [2, 3, 4]]


def test_who_has_long_waited_behind_a_group_that_finds_postgresql_away_need_not_find_that_out_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.api.sending._OVERDUE_S", 0.0)
    world.errors[1] = away()
    world.call_behind_a_held_group(2, 3, 4)
    assert [world.error_of(number) for number in (1, 2, 3, 4)] == [world.errors[1]] * 4
    assert world.groups == [[1]]
    assert world.send(5, wait_s=0)[0].batch_id == 5  # Whoever comes then leads, and finds it back.


@pytest.mark.parametrize(
    ("error", "overdue_s"), [(away(), 3_600.0), (broken(), 0.0)], ids=["they came just now", "a fault of its own"]
)
def test_nobody_else_is_given_the_error_of_a_group_that_may_not_be_theirs(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception, overdue_s: float
) -> None:
    monkeypatch.setattr("app.api.sending._OVERDUE_S", overdue_s)
    world.errors[1] = error
    world.call_behind_a_held_group(2, 3, 4)
    assert world.accepted() == [2, 3, 4]
    assert world.error_of(1) is error


def test_postgresql_that_goes_away_while_sends_are_tried_alone_is_not_asked_for_the_rest(world: World) -> None:
    world.errors = {4: broken(), 3: away()}
    world.call_behind_a_held_group(4, 2, 3, 5, 6)
    assert world.accepted() == [1, 2]
    assert world.error_of(4) is world.errors[4]
    assert [world.error_of(number) for number in (3, 5, 6)] == [world.errors[3]] * 3
    assert world.groups == [[1], [4, 2, 3, 5, 6], [4], [2], [3]]


@pytest.mark.parametrize("error", [RuntimeError("unforeseen"), SystemExit(1)])
def test_a_leader_that_ends_by_something_unforeseen_lets_nobody_hang(world: World, error: BaseException) -> None:
    world.errors[2] = error
    world.call_behind_a_held_group(2, 3, 4, wait_s=3_600)
    world.let_one_through()
    until(lambda: len(world.groups) == 2, "the group that fails")
    world.call_in_order(5)
    assert world.accepted() == [1, 5]  # Whoever comes behind is led by somebody.
    assert world.error_of(2) is error
    assert [type(world.error_of(number)) for number in (3, 4)] == [RuntimeError, RuntimeError]


def test_a_refusal_is_its_own_callers_and_no_others(world: World) -> None:
    world.outcomes = {2: [InvalidKey()], 4: [OrganizationDisabled()]}
    world.call_behind_a_held_group(2, 3, 4)
    assert world.accepted() == [1, 3]
    assert type(world.error_of(2)) is InvalidKey
    assert type(world.error_of(4)) is OrganizationDisabled
    assert world.groups == [[1], [2, 3, 4]]


def test_a_key_that_another_request_takes_in_the_same_moment_is_joined(world: World) -> None:
    world.outcomes[3] = [None, acceptance(99, existed=True)]
    world.call_behind_a_held_group(2, 3, 4)
    assert world.accepted() == [1, 2, 4, 99]
    assert world.groups == [[1], [2, 3, 4], [3]]
    assert 99 not in world.sending._submitting._asked[7].held  # Its own sender asks for it.


def test_who_joins_a_batch_asks_for_nothing(world: World) -> None:
    world.outcomes[1] = [acceptance(99, existed=True)]
    outcome, _ = world.send(1, wait_s=0)
    assert (outcome.batch_id, world.messages) == (99, [])


def test_no_process_remembers_more_keys_than_it_may(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.api.sending._LATELY_MAX", 2)
    world.outcomes = {number: [acceptance(number, organization_id=number)] for number in range(1, 8)}
    for number in range(1, 8):
        world.send(number, wait_s=0)
        assert 1 <= len(world.sending._lately) <= 2


def test_nobody_of_a_group_is_told_that_it_is_accepted_before_it_is_committed(world: World) -> None:
    world.outcomes = {number: [acceptance(number, organization_id=8)] for number in (2, 3)}
    world.commit_errors = {number: broken() for number in (2, 3)}
    world.call_behind_a_held_group(2, 3)
    assert world.accepted() == [1]
    assert [world.error_of(number) for number in (2, 3)] == [world.commit_errors[number] for number in (2, 3)]


def test_who_is_refused_or_joins_a_batch_asks_for_nothing_before_the_commit(world: World) -> None:
    world.outcomes = {1: [OrganizationDisabled()], 2: [acceptance(99, existed=True)]}
    with pytest.raises(OrganizationDisabled):
        world.send(1, wait_s=0)
    world.send(2, wait_s=0)
    assert world.messages_at_commit == [[], []]


def test_a_group_of_several_organizations_asks_once_for_each_after_the_commit(world: World) -> None:
    world.has_sent(8)
    world.has_sent(9)
    world.outcomes = {number: [acceptance(number, organization_id=8 + number % 2)] for number in (2, 3, 4, 5)}
    world.call_behind_a_held_group(2, 3, 4, 5, recipients=10)
    world.accepted()
    assert world.messages_at_commit[1] == [(7, 1, 1)]
    assert world.messages == [(7, 1, 1), (8, 2, 20), (9, 3, 20)]


def test_the_use_of_a_key_is_noted_once_for_a_group(world: World) -> None:
    world.outcomes = {number: [acceptance(number)._replace(key_use_is_old=True)] for number in (2, 3, 4)}
    world.call_behind_a_held_group(2, 3, 4)
    world.accepted()
    assert world.noted == [1]


def test_the_use_of_each_key_of_a_group_is_noted_if_its_last_is_old(world: World) -> None:
    for number, api_key_id, is_old in ((2, 11, True), (3, 12, False), (4, 13, True)):
        world.outcomes[number] = [acceptance(number)._replace(api_key_id=api_key_id, key_use_is_old=is_old)]
    world.call_behind_a_held_group(2, 3, 4)
    world.accepted()
    assert sorted(world.noted) == [11, 13]


@pytest.mark.parametrize("error", [away(), broken()], ids=["away", "broken"])
def test_a_use_that_cannot_be_noted_neither_undoes_an_acceptance_nor_accepts_it_again(
    world: World, error: Exception
) -> None:
    world.note_error = error
    world.outcomes = {number: [acceptance(number)._replace(key_use_is_old=True)] for number in (2, 3)}
    world.call_behind_a_held_group(2, 3)
    assert world.accepted() == [1, 2, 3]
    assert world.groups == [[1], [2, 3]]
    assert world.noted == [1]
