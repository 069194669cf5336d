"""Turns of webhooks: each organization has a share of the threads, and nobody waits for ever."""

from app.webhooks.turns import Turns

_THREADS = 16


def _of(organization_id: int, webhooks: int = 20) -> list[tuple[int, int]]:
    return [(100 * organization_id + number, organization_id) for number in range(webhooks)]


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
    assert sorted(order[:6]) == sorted(order[6:]) == [webhook_id for webhook_id, _ in due]


def test_a_webhook_that_is_due_no_more_is_not_begun() -> None:
    turns = Turns(2)
    [first] = turns.found(_of(1, 3))
    assert turns.found([(102, 1)]) == []
    assert turns.ended(first) == [102]
