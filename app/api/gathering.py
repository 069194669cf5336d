"""Gathering: which sends go to PostgreSQL together, who of them leads, and how long a leader waits for the rest."""

import threading
import time
from typing import Generic, Protocol, TypeVar

# One statement stays short, and one failure harms few.
_TOGETHER_MAX = 64
_RECIPIENTS_TOGETHER_MAX = 10_000
# A leader waits for others as long as they keep coming, one within the first time, all within the second.
_NEXT_WITHIN_S = 0.004
_ALL_WITHIN_S = 0.02


class Member(Protocol):
    """A send that may lead: `leads` is set when it shall, and then it is woken. It came at a `time.monotonic`."""

    leads: bool
    came_at: float

    @property
    def recipients(self) -> int: ...

    def wake(self) -> None: ...

    def sleep(self, timeout_s: float) -> bool: ...


Each = TypeVar("Each", bound=Member)


class Gathering(Generic[Each]):
    """The sends of one process that are not accepted yet, in the order in which they came.

    Callers who send again as soon as they are answered come back together. A group of all of them costs
    PostgreSQL, the workers and this process little more than a group of two, so its leader waits for as many
    as were present lately: sends that wait to be accepted, or for their batch. Who is alone waits for nobody.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: list[Each] = []
        self._is_led = False
        self._waits: Each | None = None
        self._present = 0
        self._lately = 0

    def join(self, member: Each) -> None:
        """Take a send in; it leads if nobody does."""
        with self._lock:
            self._queue.append(member)
            self._present += 1
            member.leads = not self._is_led
            self._is_led = True
            if self._waits is not None and self._is_complete():
                self._waits.wake()

    def leave(self) -> None:
        """Let a send go that was answered, or has failed."""
        with self._lock:
            self._present -= 1

    def next_group(self, leader: Each) -> list[Each]:
        """Wait for the others, and take a group; the leader is its first, and leads no more."""
        self._wait_for_others(leader)
        with self._lock:
            self._lately = max(self._present, self._lately // 2)
            recipients, count = 0, 0
            for member in self._queue[:_TOGETHER_MAX]:
                recipients += member.recipients
                if count and recipients > _RECIPIENTS_TOGETHER_MAX:
                    break
                count += 1
            group, self._queue = self._queue[:count], self._queue[count:]
            leader.leads = False  # Not before: who still waits for others must not be taken out of its own group.
        return group

    def take_who_came_before(self, moment: float) -> list[Each]:
        """Take out of the queue who came before a moment (`time.monotonic`), but for one that leads already."""
        with self._lock:
            taken = [member for member in self._queue if member.came_at < moment and not member.leads]
            self._queue = [member for member in self._queue if member not in taken]
        return taken

    def hand_over(self) -> None:
        """Let the next in the queue lead, once a group is accepted."""
        with self._lock:
            if not self._queue:
                self._is_led = False
                return
            next_leader = self._queue[0]
            next_leader.leads = True
        next_leader.wake()

    def _wait_for_others(self, leader: Each) -> None:
        until = time.monotonic() + _ALL_WITHIN_S
        before = 0
        while True:
            with self._lock:
                here = len(self._queue)
                if self._is_complete() or here == before or time.monotonic() >= until:
                    self._waits = None
                    return
                self._waits = leader
            before = here
            leader.sleep(_NEXT_WITHIN_S)

    def _is_complete(self) -> bool:
        return self._present >= self._lately or len(self._queue) >= _TOGETHER_MAX
