"""Calls to what runs on this machine: past every proxy, and whoever answers there."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from app.local import ports


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # The name is the standard library's.
        self.send_response(200 if self.path == "/readyz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    """Serve on a port of this machine."""
    with HTTPServer(("127.0.0.1", 0), _Ready) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_of_the_environment_hears_of_no_call(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert ports.answers(f"{url}/readyz")
    assert not ports.answers(f"{url}/elsewhere")


def test_nobody_and_somebody_else_are_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def be_somebody_else() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=be_somebody_else)
        thread.start()
        assert not ports.answers(f"http://127.0.0.1:{port}/readyz")
        thread.join()
    assert not ports.answers(f"http://127.0.0.1:{port}/readyz")
