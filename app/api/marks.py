"""Marks: of which organizations the web processes of one gunicorn have a message on its way, in memory they share.

A mark spares a message and decides nothing: whoever sees one waits for the drain that it speaks of, and no longer than
for a message of its own (`app.api.submitting`).
"""

import mmap
import struct

# Far more than organizations whose sends wait at one time; two that meet in one place are not held back by each other.
_PLACES = 4_096
# Of each place the organization (0: no mark), the number that its message is known by, and when it was put there: in
# nanoseconds of `time.monotonic`, which all processes of a machine share.
_MARK = struct.Struct("=qqq")
_NONE = (0, 0, 0)
_NS = 1_000_000_000


class Marks:
    """A place for each of the organizations, by their numbers. Make it before the processes are forked.

    A mark is written by one call, between whose steps no other thread gets Python's lock. A process that reads one
    while another writes it may see a mark that never was, once, and then waits as for one whose message is lost.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _PLACES * _MARK.size)

    def put(self, organization_id: int, *, message: int, now: float) -> None:
        """Mark an organization: a message that is known by this number is on its way, or is about to be."""
        self._write(organization_id, (organization_id, message, round(now * _NS)))

    def message(self, organization_id: int, *, since: float) -> int | None:
        """Return the number of the message that is on its way, or None if there is no mark of since then."""
        marked, message, put_ns = self._read(organization_id)
        return message if marked == organization_id and put_ns > since * _NS else None

    def remove(self, organization_id: int, *, message: int | None) -> None:
        """Remove an organization's mark if it is of this message, which is done with."""
        if self._read(organization_id)[:2] == (organization_id, message):
            self._write(organization_id, _NONE)

    def _read(self, organization_id: int) -> tuple[int, int, int]:
        marked, message, put_ns = _MARK.unpack_from(self._memory, self._offset(organization_id))
        return marked, message, put_ns

    def _write(self, organization_id: int, mark: tuple[int, int, int]) -> None:
        _MARK.pack_into(self._memory, self._offset(organization_id), *mark)

    def _offset(self, organization_id: int) -> int:
        return organization_id % _PLACES * _MARK.size
