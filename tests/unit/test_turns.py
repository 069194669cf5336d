"""Turns of webhooks: each organization has a share of the threads, and nobody waits for ever."""

from app.webhooks.cursors import Due
from app.webhooks.turns import Turns

_THREADS = 16


def _of(organization_id: int, webhooks: int = 20, *, are_slow: bool = False) -> list[Due]:
    return [Due(100 * organization_id + number, organization_id, are_slow) for number in range(webhooks)]


def test_no_more_is_under_way_than_there_are_threads() -> None:
    turns = Turns(_THREADS)
    everybody = [one for organization_id in range(1, 30) for one in _of(organization_id)]
    begun = turns.found(everybody)
    assert len(begun) == _THREADS
    assert len({webhook_id // 100 for webhook_id in begun}) == 6
    assert len(turns.ended(begun[0])) == 1
    assert turns.found([]) == []


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
