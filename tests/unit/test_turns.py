"""Turns of webhooks: each organization has a share of the threads, and nobody waits for ever."""

import pytest

from app.webhooks.cursors import Due
from app.webhooks.turns import Turns

_THREADS = 16


def _of(organization_id: int, webhooks: int = 20, *, are_slow: bool = False) -> list[Due]:
    return [Due(100 * organization_id + number, organization_id, are_slow) for number in range(webhooks)]


def test_slow_receivers_of_some_organizations_leave_threads_for_a_stranger() -> None:
    turns = Turns(_THREADS)
    slow = [one for organization_id in range(1, 5) for one in _of(organization_id)]
    begun = turns.found(slow)
    assert [sum(webhook_id // 100 == whose for webhook_id in begun) for whose in range(1, 5)] == [6, 4, 2, 2]
    assert turns.found(slow) == [], "what is under way or over its share is not begun again"
    assert turns.found([*slow, *_of(9, 1)]) == [900], "a stranger"


def test_no_more_is_under_way_than_there_are_threads() -> None:
    turns = Turns(_THREADS)
    everybody = [one for organization_id in range(1, 30) for one in _of(organization_id)]
    begun = turns.found(everybody)
    assert len(begun) == _THREADS
    assert len({webhook_id // 100 for webhook_id in begun}) == 6
    assert len(turns.ended(begun[0])) == 1
    assert turns.found([]) == []


def test_the_webhooks_of_an_organization_take_turns() -> None:
    turns = Turns(4)
    due = _of(1, 6)
    under_way = turns.found(due)
    order: list[int] = []
    while len(order) < 12:
        order.append(ended := under_way.pop(0))
        under_way += turns.ended(ended)
        under_way += turns.found(due)  # It is due again at once.
    assert sorted(order[:6]) == sorted(order[6:]) == [one.webhook_id for one in due]


def test_a_webhook_that_is_due_no_more_is_not_begun() -> None:
    turns = Turns(2)
    [first] = turns.found(_of(1, 3))
    assert turns.found(_of(1, 3)[2:]) == []
    assert turns.ended(first) == [102]


@pytest.mark.parametrize(("threads", "slow_at_most"), [(16, 12), (4, 3), (2, 1), (1, 1)])
def test_slow_receivers_leave_a_quarter_of_the_threads_however_many_they_are(threads: int, slow_at_most: int) -> None:
    turns = Turns(threads)
    slow = [one for organization_id in range(1, 30) for one in _of(organization_id, 1, are_slow=True)]
    begun = turns.found(slow)
    assert len(begun) == slow_at_most
    strangers = [one for organization_id in range(30, 60) for one in _of(organization_id, 1)]
    others = turns.found([*slow, *strangers])
    assert len(others) == threads - slow_at_most
    assert {webhook_id // 100 for webhook_id in others} <= set(range(30, 60))


def test_each_slow_receiver_has_its_turn_beside_others_that_never_pause() -> None:
    turns = Turns(2)
    slow = [one for organization_id in range(1, 6) for one in _of(organization_id, 1, are_slow=True)]
    everybody = [*_of(9, 1), *slow]
    under_way, seen = turns.found(everybody), set()
    for _ in range(20):
        seen.add(ended := under_way.pop(0))
        under_way += turns.ended(ended)
        under_way += turns.found(everybody)  # It is due again at once.
    assert seen == {one.webhook_id for one in everybody}


def test_a_receiver_that_is_slow_no_more_waits_as_the_others_do() -> None:
    turns = Turns(4)
    waiting = _of(9, 1, are_slow=True)
    slow = [one for organization_id in range(1, 4) for one in _of(organization_id, 1, are_slow=True)]
    assert len(turns.found([*slow, *waiting])) == 3
    assert turns.found([*slow, *_of(9, 1)]) == [900]
