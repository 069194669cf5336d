"""Connections of their own for each process and each event loop.

After a fork, parent and child would write into the same sockets, and read each other's answers.
"""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

from points_client.errors import PointsError

C = TypeVar("C")
_forks = [0]  # Beside the process id, which the system may use again.


def _forked() -> None:
    _forks[0] += 1


if hasattr(os, "register_at_fork"):  # Windows has no fork.
    os.register_at_fork(after_in_child=_forked)


class Connections(Generic[C]):
    """One HTTP client for each place where calls are made: a process, or an event loop in it.

    `shareable`: the clients share nothing that must stay in one place, such as a transport of the caller's.
    """

    def __init__(self, make: Callable[[], C], *, shareable: bool) -> None:
        self._make, self._shareable = make, shareable
        self._made = [make()]  # At once, because it may raise.
        self._of: dict[tuple[int, int, object], C] = {}

    def here(self, loop: object = None) -> C:
        """Return the client of this process and of this event loop.

        Raises:
            PointsError: the one transport is in use in another process or event loop.
        """
        here = (os.getpid(), _forks[0], loop)
        found = self._of.get(here)
        if found is not None:
            return found
        if self._of and not self._shareable:
            raise PointsError("The transport is in use in another process or event loop: make other Points here.")
        self._forget_closed_loops()
        # Those of other processes stay in the dictionary: closing them would disturb sockets that are not ours.
        return self._of.setdefault(here, self._new())

    def _new(self) -> C:
        try:
            return self._made.pop()
        except IndexError:
            return self._make()

    def _forget_closed_loops(self) -> None:
        for process, forks, loop in list(self._of):
            if (process, forks) == (os.getpid(), _forks[0]) and loop is not None and loop.is_closed():  # type: ignore[attr-defined]
                self._of.pop((process, forks, loop), None)
