"""gunicorn's thread worker, in which a thread is taken only by a request that has arrived.

Otherwise callers that are silent, or send half a request, would take every thread. The main thread receives what they
send. Only where it cannot tell the end of a request, or has no room, a thread receives the rest: one of a few.
"""

import selectors
import time
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

from app.settings import settings
from app.web import caller_socket
from app.web.caller_socket import CallerSocket

# How many threads may wait for what their callers send. No other thread waits for a caller.
WAITING_THREADS_MAX = 32
# For how many bytes there is room for the bodies of all connections, beside the first 64 KiB of each.
_ROOM_BYTES = 67_108_864
# How long a request may take to arrive while every connection is taken.
HURRIED_S = 1.0


class ArrivingWorker(ThreadWorker):
    """gunicorn's thread worker, with four of its methods replaced.

    They are `accept`, `on_client_socket_readable` (a kept connection has its next request), `finish_request` (a thread
    has answered), and `murder_pending` (called about once a second).
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # The connections whose request is arriving, the oldest first; those of them that wait for a place.
        self._arriving: dict[Any, None] = {}
        self._without_place: dict[Any, None] = {}
        self._places = WAITING_THREADS_MAX
        self._bytes_ahead = 0

    def accept(self, listener: Any) -> None:
        try:
            client, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        caller = CallerSocket(fileno=client.detach())
        self._begin(TConn(self.cfg, caller, address, listener.getsockname()))

    def on_client_socket_readable(self, conn: Any, client: Any) -> None:
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._begin(conn)

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Keep a connection for its next request, which may have arrived already; a closed one is only counted."""
        conn.sock.give_place_back()
        self._bytes_ahead -= conn.sock.bytes_ahead
        if conn.sock.fileno() == -1:
            self.nr_conns -= 1
            return
        if fs.exception() is None and (received := conn.parser.unreader.take_buffered() + conn.sock.arrived):
            conn.sock.setblocking(False)
            self._begin(conn, received)
        else:
            super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Give up the requests that do not arrive in time: sooner while every connection is taken, and at the end."""
        is_short = self.nr_conns >= self.worker_connections or not self.alive
        began_before = time.monotonic() - (HURRIED_S if is_short else caller_socket.READ_S)
        for conn in list(self._arriving):
            if conn.sock.began_at > began_before:
                break
            if conn not in self._without_place:
                self.poller.unregister(conn.sock)
            # A thread says what is wrong. In need it does so only to who has sent a head.
            if (conn.sock.has_head and self._places) if is_short else conn.sock.arrived:
                conn.sock.expect_no_more()
                self._start_waiting(conn)
            else:
                self._drop(conn)

    def _begin(self, conn: Any, received: bytes = b"") -> None:
        conn.sock.begin_request(received)
        self._bytes_ahead += len(received)
        self._arriving[conn] = None
        self._receive(conn)

    def _go_on(self, conn: Any, caller: Any) -> None:
        self.poller.unregister(caller)
        self._receive(conn)

    def _receive(self, conn: Any) -> None:
        """Receive what has come of a request, and start its answer if it is whole."""
        caller, is_over = conn.sock, False
        if not caller.is_whole:  # Else it came with the request before.
            try:
                received = caller.receive_ahead()
                self._bytes_ahead += received
                is_over = received == 0
            except BlockingIOError:
                pass
            except OSError:
                is_over = True
        if caller.is_whole:
            caller.read_until = 0.0  # The thread waits for nothing.
            self._start(conn)
        elif is_over and caller.arrived:
            self._start(conn)
        elif is_over:
            self._drop(conn)
        elif caller.is_read_ahead(settings().body_bytes_max, _ROOM_BYTES - self._bytes_ahead):
            self.poller.register(caller, selectors.EVENT_READ, partial(self._go_on, conn))
        else:
            self._start_waiting(conn)

    def _start_waiting(self, conn: Any) -> None:
        """Have a thread receive the rest, as soon as it may: only a few wait for their callers."""
        if not self._places:
            self._without_place[conn] = None
            return
        self._places -= 1
        conn.sock.place = partial(self.method_queue.defer, self._take_place_back)
        self._start(conn)

    def _take_place_back(self) -> None:
        self._places += 1
        if self._without_place:
            self._start_waiting(next(iter(self._without_place)))

    def _start(self, conn: Any) -> None:
        self._leave(conn)
        self.enqueue_req(conn)

    def _drop(self, conn: Any) -> None:
        self._leave(conn)
        self._bytes_ahead -= conn.sock.bytes_ahead
        self.nr_conns -= 1
        conn.close()

    def _leave(self, conn: Any) -> None:
        del self._arriving[conn]
        self._without_place.pop(conn, None)
