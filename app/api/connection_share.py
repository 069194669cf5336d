"""A web process's share of the connections: whether it takes the next one, or leaves it to a process that holds fewer.

The system wakes all processes of one gunicorn for a new connection, and who is awake already takes it: of 32
callers who keep theirs one process often got all, on one core, while the other had nothing to do (decision 15).
"""

import mmap
import time

_PLACES = 128
_BYTES = 4
# A process that does not come for a connection, though it was left to it so many times or for so long, is frozen or has
# too much to do. For a while it is not waited for any more.
_LEFT_MAX = 10
_LEFT_FOR_S = 0.02
# Who has left nothing for so long begins to count anew: that connection was taken.
_FORGETS_AFTER_S = 0.05
_TAKES_ALL_S = 0.1


class HeldConnections:
    """How many connections each process holds, in memory that they share. Make it before they are forked."""

    def __init__(self) -> None:
        # One more than a process holds, by its place; 0 where there is none, or it takes no more.
        self.by_place = memoryview(mmap.mmap(-1, _PLACES * _BYTES)).cast("i")


class ConnectionShare:
    """What one process knows of the connections of all, and tells of its own."""

    def __init__(self, held: HeldConnections, place: int) -> None:
        self.place = place
        self._held = held.by_place
        self._index = place % _PLACES
        self._takes_part = False
        self._others = 0
        self._left = 0
        self._left_first_at = 0.0
        self._left_last_at = 0.0
        self._takes_all_until = 0.0

    def take_part(self, does: bool, connections: int) -> None:
        """Tell whether this process takes connections at all; who does not is waited for by nobody."""
        self._takes_part = does
        self.tell(connections)

    def tell(self, connections: int) -> None:
        """Tell how many connections this process holds."""
        self._held[self._index] = connections + 1 if self._takes_part else 0

    def leaves_next(self) -> bool:
        """Tell whether the connection that waits is left to another process, which holds fewer and was woken too.

        Ask again a millisecond later: it may have been left to one that does not come.
        """
        now = time.monotonic()
        others = [held for place, held in enumerate(self._held) if held and place != self._index]
        if not others or self._held[self._index] <= min(others) or now < self._takes_all_until:
            return False
        if sum(others) > self._others or now - self._left_last_at > _FORGETS_AFTER_S:  # They do come.
            self._left, self._left_first_at = 0, now
        self._others, self._left_last_at = sum(others), now
        self._left += 1
        if self._left <= _LEFT_MAX and now - self._left_first_at <= _LEFT_FOR_S:
            return True
        self._left, self._takes_all_until = 0, now + _TAKES_ALL_S
        return False
