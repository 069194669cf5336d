"""What networks, processes and event loops do to a client: silence, certificates, names, forks, cancellation."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import pytest

from points_client import AsyncPoints, NoAnswer, Points
from points_client.testing import KEY, URL, FakePoints
from tests.client_halves import HALVES, points_of
from tests.forks import in_children
from tests.ports import free_port

BODY: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}
CHILDREN, SENDS = 4, 5
of_forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


# NO_PROXY, as curl reads it; and with a scheme or a port, as httpx does. At `{port}` the service listens.
DIRECT = [
    *(("points.test", entry) for entry in ("points.test", ".points.test", "POINTS.Test.", "test", "*", "x.test,*")),
    *(("points.test", entry) for entry in ("x.test , points.test", "x.test points.test", ",,\tpoints.test", "://,*")),
    *(("points.test", entry) for entry in ("points.test:{port}", "http://points.test", "all://points.test:{port}")),
    *(("a.points.test", entry) for entry in (".points.test", "points.test")),
    *(("xn--9ca.test", entry) for entry in ("é.test", "xn--9ca.test")),
    *(("10.1.2.3", entry) for entry in ("10.1.2.3", "10.0.0.0/8", "10.9.9.9/8", "x, 10.1.2.3:{port}")),
    *(("[fd00::1]", entry) for entry in ("fd00::1", "[fd00::1]", "fd00:0::1", "fd00::/8", "[fd00::]/8")),
    *(("[fd00::1]", entry) for entry in ("[fd00::1]:{port}", "x, [fd00::1]")),
    ("127.0.0.1", ""),
]
PROXIED = [
    *(("points.test", entry) for entry in ("", ",", "oints.test", "a.points.test", "*.test", "points.test:1")),
    *(
        ("points.test", entry)
        for entry in ("https://points.test", "fd00::/8", "[::1", "[", "a:b:c", "://", "all://x:y")
    ),
    *(("points.test", entry) for entry in ("points.test:x", "é.test", "%", "x@points.test/", "10.0.0.0/8")),
    *(("10.1.2.3", entry) for entry in ("2.3", ".1.2.3", "11.0.0.0/8", "10.0.0.0/33", "10.1.2.3:1", "::/0")),
    *(("[fd00::1]", entry) for entry in ("fe80::/10", "[fd00::2]", "::1", "1", "0.0.0.0/0", "[fd00::1]:1")),
]


@contextlib.contextmanager
def served(fake: FakePoints, asked: Callable[[str], object] = len) -> Iterator[str]:
    """Answer as `fake` does behind a real socket that stays open, and yield the address; `asked` gets each target."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked(self.path)
            target = urlsplit(self.path)  # Asked as a proxy, it begins with the host.
            where = URL + urlunsplit(("", "", target.path, target.query, ""))
            request = httpx.Request(self.command, where, headers=dict(self.headers.items()), content=body)
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


def test_no_proxy_means_what_curl_says_of_it_and_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    look_up, trusted, asked = socket.getaddrinfo, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), list[str]()
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **named: look_up("127.0.0.1", *more, **named))
    with served(FakePoints(), asked.append) as url:
        port = urlsplit(url).port
        monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{port}")
        for host, entries in DIRECT + PROXIED:
            monkeypatch.setenv("NO_PROXY", entries.format(port=port))
            with Points(KEY, f"http://{host}:{port}", ssl_context=trusted) as points:
                points.organization()
    through = [target.startswith("http://") for target in asked]
    assert dict(zip(DIRECT + PROXIED, through, strict=True)) == dict.fromkeys(DIRECT, False) | dict.fromkeys(
        PROXIED, True
    )


@pytest.mark.parametrize("half", HALVES)
def test_a_proxy_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch, half: str) -> None:
    port = free_port()
    monkeypatch.setenv("ALL_PROXY", f"http://user:secret@127.0.0.1:{port}")
    with points_of(half, KEY, "https://points.test", patience_s=0) as points, pytest.raises(NoAnswer) as none:
        points.organization()
    assert f"refused at 127.0.0.1:{port}, the proxy of the environment for points.test:443." in str(none.value)


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
