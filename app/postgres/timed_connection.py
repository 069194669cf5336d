"""A connection to PostgreSQL with a time limit for every answer, and a check whether the server has closed it."""

import select
import time
from typing import Any, ClassVar

import psycopg
from psycopg.abc import RV, PQGen

# An idle connection is readable only when the server has closed it or is closing it.
_READABLE = select.POLLIN | select.POLLPRI


class TimedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that gives up on a server that does not answer.

    The server's own time limits work only while the server runs. A frozen server keeps its TCP connections but never
    answers, and so does a proxy that has lost its server.
    """

    # Time limit for an answer; None: no limit.
    answer_timeout_s: float | None = None
    # Whether the connection has left the pool before.
    was_used = False

    # When a connection of this process to the server last timed out (`time.monotonic`).
    last_timeout_at: ClassVar[float] = 0.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.made_at = time.monotonic()

    def __del__(self, *_: Any) -> None:
        """Say nothing, unlike psycopg: a pool that is dropped cannot close what a thread still has. libpq closes it."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait as psycopg does, but for at most `answer_timeout_s`.

        Raises:
            psycopg.OperationalError: no answer in time. The connection is closed, because the answer may still come.
        """
        if timeout is not None or self.answer_timeout_s is None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        try:
            return super().wait(gen, interval, self.answer_timeout_s)
        except psycopg.OperationalError:
            if time.monotonic() < began + self.answer_timeout_s:  # The server answered with an error.
                raise
        type(self).last_timeout_at = time.monotonic()
        self.pgconn.finish()
        raise psycopg.OperationalError(f"PostgreSQL has not answered within {self.answer_timeout_s:g} s")


class StandbyConnection(TimedConnection):
    """A connection to the standby of long reads: when it is frozen, the primary is not."""

    last_timeout_at: ClassVar[float] = 0.0


def is_dead(connection: TimedConnection) -> bool:
    """Tell whether the server has closed an idle connection. It only looks at the socket and sends nothing.

    A connection older than the last timeout counts as dead too: it leads to the same server, and each connection of
    the pool would make one more caller wait for the timeout.
    """
    if connection.closed or connection.made_at < connection.last_timeout_at:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), _READABLE)
    return bool(poll.poll(0))
