"""What networks, processes and event loops do to a client: silence, certificates, names, forks, cancellation."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from points_client import AsyncPoints, NoAnswer, Points
from points_client.testing import KEY, URL, FakePoints
from tests.client_halves import HALVES, points_of
from tests.forks import in_children

BODY: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}
CHILDREN, SENDS = 4, 5
of_forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@contextlib.contextmanager
def served(fake: FakePoints) -> Iterator[str]:
    """Answer as `fake` does behind a real socket that stays open, and yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = httpx.Request(self.command, URL + self.path, headers=dict(self.headers.items()), content=body)
            answer = fake.handle_request(request)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads, block_on_close = True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://localhost:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("half", HALVES)
def test_a_try_never_outlives_what_is_left(half: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with points_of(half, KEY, url) as points, pytest.raises(NoAnswer, match=r"within 1 s|timed out") as none:
            points.send(**BODY, idempotency_key="mine", wait_s=1)
    assert none.value.key == "mine"


def test_after_many_cancelled_sends_the_next_one_works() -> None:
    fake = FakePoints(balance=10_000)

    async def run() -> None:
        async with AsyncPoints(KEY, url) as points:
            for number in range(105):
                one = asyncio.create_task(points.send(**BODY, idempotency_key=f"k-{number}"))
                await asyncio.sleep(0.0007 * (number % 7))
                one.cancel()
                await asyncio.gather(one, return_exceptions=True)
            for number in (0, 50, 104, 105):
                assert (await points.send(**BODY, idempotency_key=f"k-{number}")).status == "issued"

    with served(fake) as url:
        asyncio.run(run())
    assert len({one["id"] for one in fake.transactions}) == len(fake.transactions) == 10_000 - fake.balance


@of_forks
def test_children_of_a_process_that_has_called_get_their_own_answers() -> None:
    fake = FakePoints(balance=10_000)
    with served(fake) as url, Points(KEY, url) as points:
        points.organization()

        def work(child: int) -> None:
            for number in range(SENDS):
                email = f"{child}-{number}@example.com"
                assert [one.email for one in points.send(recipients=[email], amount=1).transactions] == [email]

        assert in_children(work, CHILDREN) == [0] * CHILDREN
        assert points.organization().balance == 10_000 - CHILDREN * SENDS
