"""A connection to PostgreSQL whose every wait has an end, and which can be seen to be dead without asking."""

import select
import time
from typing import Any, ClassVar

import psycopg
from psycopg.abc import RV, PQGen

# An idle connection has something to read only when the server has closed it, or is just closing it.
_READABLE = select.POLLIN | select.POLLPRI


class TimedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that gives up on a server that does not answer.

    The server's own time limits end a statement only while the server runs. One that is frozen, or a
    proxy whose far side is gone, keeps its TCP connection and never answers.
    """

    # Seconds that a statement may take to be answered; None waits for ever.
    answer_timeout_s: float | None = None
    # Whether it has left the pool before.
    was_used = False

    # When a connection of this process last had no answer in time (`time.monotonic`).
    last_timeout_at: ClassVar[float] = 0.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.made_at = time.monotonic()

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait as psycopg does, but for at most `answer_timeout_s`.

        Raises:
            psycopg.OperationalError: nothing came in time; the connection is closed, for its answer may yet come.
        """
        if timeout is not None or self.answer_timeout_s is None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        try:
            return super().wait(gen, interval, self.answer_timeout_s)
        except psycopg.OperationalError:
            if time.monotonic() < began + self.answer_timeout_s:  # It was answered, by an error.
                raise
        TimedConnection.last_timeout_at = time.monotonic()
        self.pgconn.finish()
        raise psycopg.OperationalError(f"PostgreSQL has not answered within {self.answer_timeout_s:g} s")


def is_dead(connection: TimedConnection) -> bool:
    """Tell whether the server has closed an idle connection, by looking at its socket and asking nothing.

    A connection older than the last timeout counts as dead as well: it leads to the same server, and each
    of a pool's connections would keep somebody waiting before it was found out.
    """
    if connection.closed or connection.made_at < TimedConnection.last_timeout_at:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), _READABLE)
    return bool(poll.poll(0))
