"""A web process's share of the connections: even, and nobody is waited for who does not come."""

from types import SimpleNamespace

import pytest

from app.api.connection_share import ConnectionShare, HeldConnections
from tests.unit.children import done_in_a_child


class Clock:
    now = 1_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("app.api.connection_share.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def shares(*connections: int) -> list[ConnectionShare]:
    """Return the shares of processes that hold so many."""
    held = HeldConnections()
    processes = [ConnectionShare(held, place) for place in range(len(connections))]
    for share, count in zip(processes, connections, strict=True):
        share.take_part(True, count)
    return processes


@pytest.mark.parametrize(
    ("connections", "leaves"),
    [
        ((0,), [False]),
        ((9,), [False]),
        ((0, 0), [False, False]),
        ((1, 0), [True, False]),
        ((3, 3), [False, False]),
        ((3, 5), [False, True]),
        ((4, 3, 5), [True, False, True]),
    ],
)
def test_who_holds_more_than_another_leaves_the_next_one_to_it(
    clock: Clock, connections: tuple[int, ...], leaves: list[bool]
) -> None:
    assert [share.leaves_next() for share in shares(*connections)] == leaves


def test_who_takes_none_is_not_waited_for(clock: Clock) -> None:
    one, other = shares(5, 0)
    assert one.leaves_next()
    other.take_part(False, 0)
    assert not one.leaves_next()
    other.tell(0)  # What ends meanwhile does not bring it back.
    assert not one.leaves_next()
    other.take_part(True, 0)
    assert one.leaves_next()


def test_who_does_not_come_is_waited_for_ten_times_and_then_not_for_a_while(clock: Clock) -> None:
    one, _ = shares(5, 0)
    for _ in range(3):
        assert [one.leaves_next() for _ in range(11)] == [True] * 10 + [False]
        clock.now += 0.09
        assert not one.leaves_next()
        clock.now += 0.02


def test_who_comes_is_waited_for_as_long_as_it_holds_fewer(clock: Clock) -> None:
    one, other = shares(50, 0)
    for connections in range(50):
        other.tell(connections)
        assert [one.leaves_next() for _ in range(3)] == [True] * 3
    other.tell(50)
    assert not one.leaves_next()


def test_who_comes_and_ends_what_it_took_is_waited_for_each_time(clock: Clock) -> None:
    one, _ = shares(5, 0)
    for _ in range(50):
        assert one.leaves_next()
        clock.now += 0.06


def test_who_takes_long_from_one_look_to_the_next_waits_no_longer_for_it(clock: Clock) -> None:
    one, _ = shares(5, 0)
    looks = []
    for _ in range(3):
        looks.append(one.leaves_next())
        clock.now += 0.015
    assert looks == [True, True, False]


def test_where_others_end_calls_nobody_is_waited_for_any_longer(clock: Clock) -> None:
    one, other, _ = shares(50, 40, 0)
    looks = []
    for connections in range(40, 25, -1):
        other.tell(connections)
        looks.append(one.leaves_next())
    assert looks[:11] == [True] * 10 + [False]


def test_a_process_sees_how_many_another_holds() -> None:
    one, other = shares(2, 2)
    done_in_a_child(lambda: other.tell(1))
    assert one.leaves_next()
