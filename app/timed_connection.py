"""A connection to PostgreSQL whose every wait has an end, and which can be seen to be dead without asking."""

import select
import time
from typing import Any, ClassVar

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.errors import _WaitTimeout

# What can be read from a connection nobody asked anything on is the server's farewell, or the end of the line.
_READABLE = select.POLLIN | select.POLLPRI


class TimedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that gives up on a server that has fallen silent.

    The server's own time limits end a statement only while the server runs. One that is frozen, or a
    proxy whose far side is gone, keeps its TCP connection well and never answers.
    """

    # Seconds that a statement may take to be answered; None waits for ever.
    patience_s: float | None = None
    # Whether it has left the pool before.
    was_used = False

    # When one of this process's connections was last found silent (`time.monotonic`).
    fell_silent_at: ClassVar[float] = 0.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.made_at = time.monotonic()
        # The names of the statements that the server keeps prepared for `app.exchange`.
        self.prepared: set[bytes] = set()

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        """Have the server forget a statement of psycopg's, or every one there is, as psycopg does after a rollback."""
        if name is None:
            self.prepared.clear()
        return super()._deallocate(name)

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait as psycopg does, but for `patience_s` at the most.

        Raises:
            psycopg.OperationalError: nothing came in time; the connection is closed, for its answer may yet come.
        """
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.patience_s)
        except _WaitTimeout:
            TimedConnection.fell_silent_at = time.monotonic()
            self.pgconn.finish()
            raise psycopg.OperationalError(f"PostgreSQL has not answered within {self.patience_s:g} s") from None


def is_dead(connection: TimedConnection) -> bool:
    """Tell whether a connection that was idle has been closed by the server, or is just being closed.

    One that is older than the last silence is taken for dead as well: it leads the same way, and each of a
    pool's connections would keep somebody waiting before it was found out. It costs a look at the socket
    and no way to the server and back, so it can be asked before each use.
    """
    if connection.closed or connection.made_at < TimedConnection.fell_silent_at:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), _READABLE)
    return bool(poll.poll(0))
