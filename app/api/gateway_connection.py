"""A caller's connection, as the web process reads and writes it: nothing about it lasts for ever."""

import socket
import time
from collections import deque
from concurrent.futures import Future
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import ThreadWorker

from app.api.connection_share import ConnectionShare, HeldConnections
from app.settings import settings

# A caller who begins a request has this long to end it; 8 MiB in that time is a slow line.
READ_DEADLINE_S = 20.0
# One who does not read its answer is waited for this long at a time, and one that reads slower than this at last: then
# the 2.5 MB of 10,000 transactions take it two minutes.
_SEND_TIMEOUT_S = 30.0
_SLOWEST_BYTES_PER_S = 20_000

# Of a body that nobody wanted to read, so many times the limit of bodies is read and thrown away.
_DISCARDED_BODIES = 4
# A caller whose connection ends with its answer has this long to read it and to close its side.
_LINGER_S = 2.0
# What it still sends meanwhile is thrown away, up to this.
_DISCARDED_BYTES_MAX = 65_536

# After so long a connection that was left to another process is looked for again.
_LOOKS_AGAIN_AFTER_S = 0.001


class Connection(socket.socket):
    """A caller's socket that cannot hold a thread for ever: gunicorn reads it blocking, here up to a deadline.

    Each request begins with `setblocking(True)`, which sets the deadline anew.
    """

    _deadline = 0.0

    def setblocking(self, flag: bool, /) -> None:  # The signature is the socket's.
        self._deadline = time.monotonic() + READ_DEADLINE_S
        super().settimeout(_SEND_TIMEOUT_S if flag else 0.0)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        if self.gettimeout() == 0.0:
            return super().recv(size, flags)
        # A caller that goes quiet, or drips a byte at a time, has closed its connection as far as we care.
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            return b""
        super().settimeout(remaining)
        try:
            return super().recv(size, flags)
        except TimeoutError:
            return b""
        finally:
            super().settimeout(_SEND_TIMEOUT_S)

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        """Send all of it. Python's own has one limit for however much that is, which is too little for a slow line.

        Raises:
            TimeoutError: the caller reads nothing, or too slowly.
        """
        unsent = memoryview(data)
        deadline = time.monotonic() + _SEND_TIMEOUT_S + len(unsent) / _SLOWEST_BYTES_PER_S
        while unsent:
            if time.monotonic() > deadline:
                raise TimeoutError
            unsent = unsent[super().send(unsent, flags) :]


class ConnectionWorker(ThreadWorker):
    """gunicorn's thread worker, but for how connections begin and end.

    Its main thread accepts all of them and hands out all requests: whatever it waits for, everybody waits for.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # Answered, and closed on our side; the one that has lingered longest is the first.
        self.lingering_conns: deque[Any] = deque()
        self.share = ConnectionShare(HeldConnections(), 0)  # Of all connections, unless it is told of other processes.
        self._leaves_until: float | None = None

    def accept(self, listener: Any) -> None:
        """Take a connection, or leave it to a process that holds fewer and look for it again in a moment."""
        if self.share.leaves_next():
            self._leaves_until = time.monotonic() + _LOOKS_AGAIN_AFTER_S
            super().set_accept_enabled(False)  # Else the main thread would be told of it without end.
        else:
            super().accept(listener)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Take connections or none; gunicorn asks for it whenever it is not so, between two waits for what happens."""
        self.share.take_part(enabled, self.nr_conns)
        if not enabled or self._leaves_until is None:
            super().set_accept_enabled(enabled)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Do what there is to do, and tell the other processes how many connections are left."""
        if self._leaves_until is not None:
            timeout = min(timeout, max(0.0, self._leaves_until - time.monotonic()))
        super().wait_for_and_dispatch_events(timeout)
        self.share.tell(self.nr_conns)
        if self._leaves_until is not None and self._leaves_until <= time.monotonic():
            self._leaves_until = None

    def enqueue_req(self, conn: Any) -> None:
        """Give a new connection its deadline, and no thread before it has said something."""
        if isinstance(conn.sock, Connection):
            super().enqueue_req(conn)
            return
        conn.sock = Connection(fileno=conn.sock.detach())
        conn.sock.setblocking(False)
        conn.timeout = time.monotonic() + READ_DEADLINE_S
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def finish_request(self, conn: Any, fs: "Future[Any]") -> None:
        """Close a connection that is done with, and do not wait for its caller.

        gunicorn would, in the main thread and for seconds: a caller that was told `Connection: close`, and had not
        closed its side yet, held up everybody else of its process.
        """
        if fs.cancelled() or fs.exception() is not None or fs.result():
            super().finish_request(conn, fs)
        else:
            self._linger(conn)

    def _linger(self, conn: Any) -> None:
        """Close our side, and read until the caller closes its own (RFC 9112, 9.6).

        Were both closed at once, bytes that the caller still sends would make its system throw our answer away.
        """
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:  # The caller has gone already.
            self._end(conn)
            return
        conn.timeout = time.monotonic() + _LINGER_S
        conn.discarded = 0
        self.lingering_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self._discard, conn))

    def _discard(self, conn: Any, sock: Any) -> None:
        try:
            read = len(sock.recv(_DISCARDED_BYTES_MAX))
        except BlockingIOError:
            return
        except OSError:
            read = 0
        conn.discarded += read
        if not read or conn.discarded > _DISCARDED_BYTES_MAX:
            self._end_lingering(conn)

    def _end_lingering(self, conn: Any) -> None:
        self.lingering_conns.remove(conn)
        self.poller.unregister(conn.sock)
        self._end(conn)

    def _end(self, conn: Any) -> None:
        self.nr_conns -= 1
        conn.close()

    def murder_pending(self) -> None:
        """End what has lasted too long; gunicorn asks for it once a second."""
        super().murder_pending()
        while self.lingering_conns and self.lingering_conns[0].timeout <= time.monotonic():
            self._end_lingering(self.lingering_conns[0])

    def _cap_keepalive(self, deadline: float) -> None:
        """Let who has not said anything yet hold up the end of this process no longer than who is kept alive."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:
        """Read what the application left of a body; tell whether the connection can take another request.

        The request is answered by now, but many callers write all of it before they read: were the connection closed
        under them, they would see that, and not the answer.
        """
        deadline = time.monotonic() + READ_DEADLINE_S
        try:
            is_read = conn.parser.finish_body(
                deadline=deadline, max_bytes=_DISCARDED_BODIES * settings().body_bytes_max
            )
        except ParseException:  # Its chunks are none: where the next request begins is unknown.
            return False
        return keepalive and is_read and time.monotonic() < deadline
