"""Keeping the calls that a web process has answered, until its one writing thread has written them."""

import threading
from collections import deque
from collections.abc import Callable

from app import logs
from app.postgres.database import transaction
from app.request_log import rows
from app.request_log.rows import Call

WRITE_EVERY_S = 0.25
# About 3 MB. Full only when PostgreSQL has stopped writing.
KEPT_MAX = 5_000
# Statuses of calls that are refused by their key alone, so that a caller can make thousands of them a second.
_AT_THE_DOOR = (401, 429)
_AT_THE_DOOR_MAX = 100

# Why a call is missing in the list.
FULL, NOT_WRITTEN = "full", "not_written"

_log = logs.logger()


class Keeping:
    """The calls of one process that are not written yet.

    A request only appends to memory. What finds no room, or cannot be written, is lost: `count_lost` counts it.
    """

    def __init__(self, count_lost: Callable[[str, int], None]) -> None:
        self._count_lost = count_lost
        self._calls: deque[Call] = deque()
        self._refused: set[tuple[bytes, int]] = set()
        self._writing = threading.Lock()
        self._stopping = threading.Event()
        self._is_failing = False

    def keep(self, call: Call) -> None:
        """Keep a call. Of those that a key is refused by 401 or by 429, only the first until the next writing."""
        if call.status in _AT_THE_DOOR:
            refused = (call.key_hash, call.status)
            if refused in self._refused:
                return
            if len(self._refused) >= _AT_THE_DOOR_MAX:
                self._count_lost(FULL, 1)
                return
            self._refused.add(refused)
        if len(self._calls) >= KEPT_MAX:
            self._count_lost(FULL, 1)
        else:
            self._calls.append(call)

    def start(self) -> None:
        """Start the writing thread. Call it after the fork: threads do not survive one."""
        for reason in (FULL, NOT_WRITTEN):
            self._count_lost(reason, 0)  # Shown as 0 from now on.
        threading.Thread(target=self._keep_writing, name="request_log", daemon=True).start()

    def stop(self) -> None:
        """Write what is kept, and no more after it."""
        self._stopping.set()
        self.write()

    def write(self) -> None:
        """Write what is kept now. No error ends it: PostgreSQL may be away, and comes back."""
        with self._writing:
            self._refused.clear()
            calls = [self._calls.popleft() for _ in range(len(self._calls))]
            if not calls:
                return
            try:
                with transaction() as connection:
                    rows.write(connection, calls)
            except Exception as error:  # noqa: BLE001
                self._count_lost(NOT_WRITTEN, len(calls))
                if not self._is_failing:
                    _log.warning("requests_not_written", calls=len(calls), **logs.kind_of(error))
                self._is_failing = True
            else:
                self._is_failing = False

    def _keep_writing(self) -> None:
        while not self._stopping.wait(WRITE_EVERY_S):
            self.write()
