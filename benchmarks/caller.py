"""The load generator's process: callers on raw sockets, cheap enough to leave the cores to the service.

It reads its plan as JSON from standard input and writes its figures, its own CPU time included, to standard output.
It imports only the standard library.
"""

import json
import select
import socket
import sys
import time
from typing import Any

_PIECE_BYTES = 1 << 20
# Far longer than any answer takes, even the rival's 10,000 on a loaded machine.
_TIMEOUT_S = 600


class Caller:
    """One caller on one kept connection: it sends its requests in turn, each after the last answer."""

    def __init__(self, host: str, port: int, requests: list[bytes], first: int) -> None:
        self._address = (host, port)
        self._requests = requests
        self._next = first % len(requests)
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(self._address, timeout=_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self) -> None:
        """Send the next request."""
        request = self._requests[self._next]
        self._next = (self._next + 1) % len(self._requests)
        self._send(request)

    def exchange(self, request: bytes) -> tuple[int, float]:
        """Send a request and wait for its answer; return its status and the seconds it took."""
        self._send(request)
        while (status := self.receive()) == 0:
            pass
        return status, time.perf_counter() - self.sent_at

    def close(self) -> None:
        self.socket.close()

    def _send(self, request: bytes) -> None:
        self._head = b""
        self._missing: int | None = None
        self._tail = b""
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> int:
        """Read available data; return the answer's status once it is complete, before that 0.

        Raises:
            ConnectionError: the server closed the connection.
        """
        piece = self.socket.recv(_PIECE_BYTES)
        if not piece:
            raise ConnectionResetError
        if self._missing is None and not self._tail:
            self._head += piece
            head, separator, piece = self._head.partition(b"\r\n\r\n")
            if not separator:
                return 0
            self._status = int(head[9:12])
            _, found, length = head.lower().partition(b"\r\ncontent-length:")
            self._missing = int(length.partition(b"\r\n")[0]) if found else None
        if self._missing is not None:
            self._missing -= len(piece)
            return self._status if self._missing <= 0 else 0
        self._tail = (self._tail + piece)[-7:]  # No length: the answer is chunked, and ends with an empty chunk.
        return self._status if self._tail == b"\r\n0\r\n\r\n" else 0


class _Callers:
    """All callers of a process, the latencies of calls that ended after `counted_from`, and the failures."""

    def __init__(self, callers: list[Caller], *, expect: int, counted_from: float, every_s: float) -> None:
        self._expect = expect
        self._every_s = every_s
        # When the callers that pause call again (`perf_counter`), soonest first.
        self._resting: list[tuple[float, Caller]] = []
        self._counted_from = counted_from
        self._poll = select.poll()
        self._by_number: dict[int, Caller] = {}
        self.latencies_s: list[float] = []
        self.failures: dict[str, int] = {}
        self.calls_in_all = 0
        for caller in callers:
            self._begin(caller)

    def _begin(self, caller: Caller) -> None:
        number = caller.socket.fileno()
        self._by_number[number] = caller
        self._poll.register(number, select.POLLIN)
        caller.send()

    def run_for(self, seconds: float) -> None:
        """Wait up to `seconds` for answers; each caller with a complete answer sends its next request."""
        now = time.perf_counter()
        while self._resting and self._resting[0][0] <= now:
            self._resting.pop(0)[1].send()
        if self._resting:
            seconds = min(seconds, self._resting[0][0] - now)
        for number, _ in self._poll.poll(max(1, int(seconds * 1e3))):
            caller = self._by_number[number]
            try:
                status = caller.receive()
            except OSError as error:
                self._failed(type(error).__name__)
                self._poll.unregister(number)
                del self._by_number[number]
                caller.close()
                caller.connect()
                self._begin(caller)
                continue
            if status:
                self._count(caller, status)
                self._again(caller)

    def _again(self, caller: Caller) -> None:
        """Send the caller's next request, at once or when its interval is over."""
        at = caller.sent_at + self._every_s
        if at <= time.perf_counter():
            caller.send()
        else:
            self._resting.append((at, caller))
            self._resting.sort(key=lambda resting: resting[0])

    def _count(self, caller: Caller, status: int) -> None:
        ended_at = time.perf_counter()
        self.calls_in_all += 1
        if status != self._expect:
            self._failed(str(status))
        elif ended_at >= self._counted_from:
            self.latencies_s.append(ended_at - caller.sent_at)

    def _failed(self, how: str) -> None:
        self.failures[how] = self.failures.get(how, 0) + 1


def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Call from `start_at` for `warm_up_s` and then `seconds`; count only the calls that end in the latter."""
    requests = [request.encode("latin-1") for request in plan["requests"]]
    step = max(1, len(requests) // plan["callers"])
    connected = [Caller(plan["host"], plan["port"], requests, place * step) for place in range(plan["callers"])]
    time.sleep(max(0.0, plan["start_at"] - time.time()))
    counted_from = time.perf_counter() + plan["warm_up_s"]
    until = counted_from + plan["seconds"]
    callers = _Callers(connected, expect=plan["expect"], counted_from=counted_from, every_s=plan["every_s"])
    while (now := time.perf_counter()) < counted_from:
        callers.run_for(counted_from - now)
    cpu_from_s = time.process_time()
    while (now := time.perf_counter()) < until:
        callers.run_for(until - now)
    return {
        "latencies_s": callers.latencies_s,
        "failures": callers.failures,
        "calls_in_all": callers.calls_in_all,
        "cpu_s": time.process_time() - cpu_from_s,
    }


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)
