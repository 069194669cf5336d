"""Marks: of which organizations the web processes of this machine have a message on its way, in memory that they share.

A mark spares a message and decides nothing: whoever sees one waits for the drain that it speaks of, and no longer than
for a message of its own (`app.api.submitting`).
"""

import mmap

# Far more than organizations whose sends wait at one time; two that meet in one place are not held back by each other.
_PLACES = 4_096
_BYTES = 8
_NS = 1_000_000_000


class Marks:
    """A place for each of the organizations, by their numbers. Make it before the processes are forked."""

    def __init__(self) -> None:
        memory = mmap.mmap(-1, 3 * _PLACES * _BYTES)
        # Of each place the organization (0: no mark), the batch that its message names, and until when that counts: in
        # nanoseconds of `time.monotonic`, which all processes of a machine share.
        self._numbers = memoryview(memory).cast("q")

    def put(self, organization_id: int, *, message: int, until: float) -> None:
        """Mark an organization: a message that names this batch is on its way, or is about to be."""
        place = self._place(organization_id)
        self._numbers[place] = 0  # Nobody shall read one half of this mark and one of the last.
        self._numbers[place + 1] = message
        self._numbers[place + 2] = round(until * _NS)
        self._numbers[place] = organization_id

    def message(self, organization_id: int, *, now: float) -> int | None:
        """Return the batch that the message names which is on its way, or None."""
        place = self._place(organization_id)
        if self._numbers[place] != organization_id or self._numbers[place + 2] <= now * _NS:
            return None
        return self._numbers[place + 1]

    def remove(self, organization_id: int, *, message: int | None) -> None:
        """Remove an organization's mark if it is of this message, which is done with."""
        place = self._place(organization_id)
        if self._numbers[place] == organization_id and self._numbers[place + 1] == message:
            self._numbers[place] = 0

    def _place(self, organization_id: int) -> int:
        return organization_id % _PLACES * 3
