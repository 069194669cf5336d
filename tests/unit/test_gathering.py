"""Gathering: a leader waits for as many as were present lately, while they come, and never long."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from app.api import gathering as module
from app.api.gathering import Gathering


class Caller:
    """A member whose every sleep is noted; `meanwhile` happens in it, and it ends early when somebody wakes it."""

    recipients = 1

    def __init__(self, name: str = "", meanwhile: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.leads = False
        self.came_at = 0.0
        self.slept: list[float] = []
        self.woken = 0
        self._meanwhile = meanwhile

    def wake(self) -> None:
        self.woken += 1

    def sleep(self, timeout_s: float) -> bool:
        self.slept.append(timeout_s)
        self._meanwhile()
        return self.woken > 0


@pytest.fixture
def gathering() -> Gathering[Caller]:
    """Give one that lately had three present, who have all been answered."""
    made = Gathering[Caller]()
    callers = [Caller() for _ in range(3)]
    for caller in callers:
        made.join(caller)
    assert made.next_group(callers[0]) == callers
    made.hand_over()
    for _ in callers:
        made.leave()
    return made


def join(gathering: Gathering[Caller], caller: Caller) -> Caller:
    gathering.join(caller)
    return caller


def test_who_is_alone_waits_for_nobody() -> None:
    gathering = Gathering[Caller]()
    for _ in range(3):
        caller = join(gathering, Caller())
        assert caller.leads
        assert gathering.next_group(caller) == [caller]
        gathering.hand_over()
        gathering.leave()
        assert caller.slept == []


def test_a_leader_is_woken_by_the_last_that_was_missing_and_waits_no_longer(gathering: Gathering[Caller]) -> None:
    coming = [Caller("second"), Caller("third")]

    def come() -> None:
        gathering.join(coming[len(leader.slept) - 1])
        assert leader.woken == len(leader.slept) - 1

    leader = join(gathering, Caller("first", come))
    assert gathering.next_group(leader) == [leader, *coming]
    assert leader.slept == [module._NEXT_WITHIN_S] * 2
    assert leader.woken == 1
    assert not any(caller.leads for caller in coming)


def test_a_leader_that_still_waits_for_others_is_not_taken_out_of_its_own_group(gathering: Gathering[Caller]) -> None:
    taken = []
    leader = join(gathering, Caller(meanwhile=lambda: taken.extend(gathering.take_who_came_before(1.0))))
    assert gathering.next_group(leader) == [leader]
    assert (leader.slept, taken, leader.leads) == ([module._NEXT_WITHIN_S], [], False)


def test_a_leader_to_whom_nobody_comes_leaves_after_one_look(gathering: Gathering[Caller]) -> None:
    leader = join(gathering, Caller())
    assert gathering.next_group(leader) == [leader]
    assert leader.slept == [module._NEXT_WITHIN_S]


def test_who_waits_for_its_batch_is_present_and_not_waited_for(gathering: Gathering[Caller]) -> None:
    first = join(gathering, Caller())
    gathering.next_group(first)
    gathering.hand_over()
    for _ in range(2):  # Two more, in a group of their own; lately there were three.
        second, third = join(gathering, Caller()), join(gathering, Caller())
        assert gathering.next_group(second) == [second, third]
        gathering.hand_over()
        assert second.slept == []
        gathering.leave()
        gathering.leave()


def test_a_leader_waits_no_longer_than_it_may_though_more_keep_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    gathering = Gathering[Caller]()
    gathering._lately = 1_000
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def come() -> None:
        clock.now += 0.003
        gathering.join(Caller())

    leader = join(gathering, Caller(meanwhile=come))
    assert len(gathering.next_group(leader)) == 8
    assert clock.now == pytest.approx(0.021)


def test_a_full_group_is_not_waited_for(gathering: Gathering[Caller], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOGETHER_MAX", 2)
    leader, second = join(gathering, Caller()), join(gathering, Caller())
    assert gathering.next_group(leader) == [leader, second]
    assert leader.slept == []


def test_what_was_lately_is_soon_forgotten(gathering: Gathering[Caller]) -> None:
    gathering._lately = 64
    sleeps = []
    for _ in range(8):
        caller = join(gathering, Caller())
        gathering.next_group(caller)
        gathering.hand_over()
        gathering.leave()
        sleeps.append(len(caller.slept))
    assert sleeps == [1, 1, 1, 1, 1, 1, 0, 0]


def test_who_has_left_is_not_woken_by_later_arrivals(gathering: Gathering[Caller]) -> None:
    leader = join(gathering, Caller())
    gathering.next_group(leader)
    for _ in range(5):
        gathering.join(Caller())
    assert leader.woken == 0


def test_who_came_before_a_moment_can_be_taken_out_but_not_whoever_leads_already() -> None:
    gathering = Gathering[Caller]()
    first, *behind = callers = [Caller(str(number)) for number in range(5)]
    for came_at, caller in enumerate(callers):
        caller.came_at = float(came_at)
        gathering.join(caller)
    assert gathering.take_who_came_before(3.0) == behind[:2]
    assert gathering.next_group(first) == [first, *behind[2:]]
