"""Sends that nobody issues do not take the threads that others need."""

import json
import selectors
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from pathlib import Path

import httpx
import pytest

from app.api.sending.wait_slots import THREADS, WAITING_SENDS_MAX, WAITING_SENDS_OF_AN_ORGANIZATION_MAX
from app.local import ports
from tests.deadline import comes_true
from tests.integration import books
from tests.ports import free_port
from tests.service.deployment import deployment

pytestmark = [pytest.mark.usefixtures("broker", "database"), pytest.mark.long]

# More than one organization may have waiting, and than there are threads: of both, together, too.
_SENDS = THREADS
# Far less than what waits is left waiting.
_PATIENCE_S = 60


def test_an_organization_whose_sends_nobody_issues_leaves_threads_to_everybody_else(tmp_path: Path) -> None:
    waiting_long = {"POINTS_WAIT_S": "300"}
    with deployment(tmp_path, **waiting_long) as parts, ExitStack() as connections:
        port = free_port()
        parts.web(port)
        keys = [books.make_live_key(books.make_organization(10**6)) for _ in range(2)]
        of_one = [connections.enter_context(_sent(port, keys[0])) for _ in range(_SENDS)]
        answers = _statuses(of_one, _SENDS - WAITING_SENDS_OF_AN_ORGANIZATION_MAX)
        of_another = [connections.enter_context(_sent(port, keys[1])) for _ in range(_SENDS)]
        answers += _statuses(of_another, _SENDS - (WAITING_SENDS_MAX - WAITING_SENDS_OF_AN_ORGANIZATION_MAX))
        assert answers == Counter({202: 2 * _SENDS - WAITING_SENDS_MAX})

        url = f"http://{ports.HOST}:{port}"
        assert httpx.get(f"{url}/healthz", timeout=_PATIENCE_S).status_code == 200
        body = {"recipient": "a@example.com", "amount": 1}
        bearer = {"Authorization": f"Bearer {keys[1]}"}
        verified = httpx.post(f"{url}/v1/points/verify", json=body, headers=bearer, timeout=_PATIENCE_S)
        assert verified.json()["data"]["validated"] is True

        parts.worker("worker1")
        parts.beat()
        assert _statuses(of_one + of_another, WAITING_SENDS_MAX) == Counter({201: WAITING_SENDS_MAX})
        # Nobody waits for those answered 202: they may be issued after the last answer.
        assert comes_true(lambda: books.counts() == (0, 2 * _SENDS), within_s=_PATIENCE_S), books.counts()
    assert books.breaches() == []


@contextmanager
def _sent(port: int, key: str) -> Iterator[socket.socket]:
    """Send one request on a connection of its own, and do not wait for its answer."""
    body = json.dumps({"recipient": "a@example.com", "amount": 1})
    head = f"POST /v1/points/send HTTP/1.1\r\nHost: {ports.HOST}\r\nAuthorization: Bearer {key}\r\n"
    head += f"Content-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((ports.HOST, port), timeout=_PATIENCE_S) as connection:
        connection.sendall((head + body).encode())
        yield connection


def _statuses(waiting: list[socket.socket], count: int) -> Counter[int]:
    """Read the first `count` answers that come, from whichever connection; it is then no longer among the waiting."""
    statuses: Counter[int] = Counter()
    with selectors.DefaultSelector() as selector:
        for connection in waiting:
            selector.register(connection, selectors.EVENT_READ, connection)
        while statuses.total() < count:
            answered = selector.select(_PATIENCE_S)
            assert answered, f"{statuses.total()} of {count} answers came: {statuses}"
            for key, _ in answered[: count - statuses.total()]:
                selector.unregister(key.data)
                waiting.remove(key.data)
                with HTTPResponse(key.data) as response:
                    response.begin()
                    statuses[response.status] += 1
    return statuses
