"""What the network and its users do to a client: silence, drops, certificates, names, gateways, cancellation, runs."""

import asyncio
import contextlib
import datetime
import http.server
import logging
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from points_client import AsyncPoints, NoAnswer, NotAccepted, Points, Refused, Wait
from points_client._sync import events as sync_events
from points_client.testing import KEY, URL, FakePoints
from tests.unit.served_fake import served

BODY: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}


@contextlib.contextmanager
def silent(first: int, url: str, say: Callable[[socket.socket], object] = lambda _: None) -> Iterator[str]:
    """Take connections: say nothing (or `say`) on the `first` of them, and pass the others on to `url`."""
    target = httpx.URL(url)
    stopped = threading.Event()

    def pipe(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := one.recv(65_536):
                other.sendall(chunk)
            other.shutdown(socket.SHUT_WR)

    def serve(connection: socket.socket, number: int) -> None:
        with connection:
            if number < first:
                with contextlib.suppress(OSError):
                    say(connection)
                stopped.wait(20)
                return
            with socket.create_connection((target.host, target.port or 80)) as service:
                back = threading.Thread(target=pipe, args=(service, connection), daemon=True)
                back.start()
                pipe(connection, service)
                back.join(20)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def listen() -> None:
            with contextlib.suppress(OSError):
                for number in range(10_000):
                    threading.Thread(target=serve, args=(listener.accept()[0], number), daemon=True).start()

        threading.Thread(target=listen, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        stopped.set()


def _drops(connection: socket.socket) -> None:
    for byte in b"HTTP/1.1 201 Created\r\nX-Slow: " + b"x" * 1_000:
        connection.sendall(bytes([byte]))
        time.sleep(0.1)


@pytest.mark.parametrize("say", [lambda _: None, _drops], ids=["silence", "drops"])
def test_a_connection_that_is_silent_once_leaves_time_for_a_second_try(say: Callable[[socket.socket], object]) -> None:
    fake = FakePoints(balance=5)
    with served(fake) as url, silent(1, url, say) as slow, Points(KEY, slow) as points:
        began = time.monotonic()
        assert points.send(**BODY, wait_s=4).status == "issued"
        assert 2 <= time.monotonic() - began < 4
    assert fake.balance == 4


def test_a_try_never_outlives_what_is_left() -> None:
    with served(FakePoints()) as url, silent(9, url) as slow:

        async def send() -> None:
            async with AsyncPoints(KEY, slow) as points:
                await points.send(**BODY, idempotency_key="mine", wait_s=2)

        for call in (
            lambda: Points(KEY, slow).send(**BODY, idempotency_key="mine", wait_s=2),
            lambda: asyncio.run(send()),
        ):
            began = time.monotonic()
            with pytest.raises(NoAnswer, match=r"no whole answer within 1 s|timed out") as none:
                call()
            assert none.value.key == "mine"
            assert time.monotonic() - began < 3.5


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate of this machine that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return paths


@pytest.fixture
def with_tls(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve an organization over TLS; yield the address and the certificate."""
    certificate, key = _certificate(tmp_path)
    fake = FakePoints(balance=7)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            request = httpx.Request("GET", URL + self.path, headers=dict(self.headers.items()))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(fake.handle_request(request).content)

        def log_message(self, *_: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # Who does not trust it breaks the handshake off.

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"https://localhost:{server.server_port}", certificate
        server.shutdown()
        thread.join()


def _fails(url: str) -> list[str]:
    """Return what a sync and an async client say of a service that cannot be reached."""

    async def ask() -> None:
        async with AsyncPoints(KEY, url) as points:
            await points.organization()

    said = []
    for call in (lambda: Points(KEY, url).organization(), lambda: asyncio.run(ask())):
        began = time.monotonic()
        with pytest.raises(NotAccepted) as none:
            call()
        assert time.monotonic() - began < 3, "what cannot heal is not tried again"
        said.append(str(none.value))
    return said


def test_a_certificate_is_trusted_as_the_caller_says(
    with_tls: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url, certificate = with_tls
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for sentence in _fails(url):
        assert "certificate is not trusted (self-signed certificate)" in sentence
        assert "ssl_context=" in sentence
    with Points(KEY, url, ssl_context=ssl.create_default_context(cafile=certificate)) as points:
        assert points.organization().balance == 7
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Points(KEY, url) as points:
        assert points.organization().balance == 7
    for named in (tmp_path / "missing.pem", tmp_path / "key.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(named))
        with pytest.raises(ValueError, match=f"SSL_CERT_FILE names {named}"):
            Points(KEY, url)


def _no_name(*_: object, **__: object) -> None:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_what_cannot_heal_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _no_name)
    for sentence in _fails("http://nobody.invalid"):
        assert "its name is not known" in sentence
    monkeypatch.undo()
    with served(FakePoints()) as url:
        for sentence in _fails(url.replace("http:", "https:")):
            assert "does not speak TLS" in sentence
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def ask() -> None:
        async with AsyncPoints(KEY, f"http://127.0.0.1:{port}", patience_s=0) as points:
            await points.organization()

    calls = (lambda: Points(KEY, f"http://127.0.0.1:{port}", patience_s=0).organization(), lambda: asyncio.run(ask()))
    for call in calls:
        with pytest.raises(NotAccepted, match="Connection refused"):
            call()
    for name, value in (("ALL_PROXY", "socks5://127.0.0.1:9"), ("HTTP_PROXY", "nonsense://x")):
        monkeypatch.setenv(name, value)
        with pytest.raises(ValueError, match="proxy that the environment names"):
            Points(KEY, "http://points.example.com")
        monkeypatch.delenv(name)


def test_a_gateway_that_ends_quiet_calls_is_no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    passed_s: list[float] = [0.0]
    asked: list[int] = []
    told: list[float] = []

    class Time:
        @staticmethod
        def monotonic() -> float:
            return passed_s[0]

    def answer(request: httpx.Request) -> httpx.Response:
        wait_s = int(request.url.params.get("wait", 0))
        asked.append(wait_s)
        passed_s[0] += min(15, wait_s)
        if wait_s > 15:
            return httpx.Response(504, text="<html>Gateway Timeout</html>")
        found = [] if len(asked) < 40 else [event(1)]
        data = {"events": found, "last_sequence": len(found)}
        return httpx.Response(200, json={"success": True, "data": data, "errors": None, "additional_data": {}})

    monkeypatch.setattr(sync_events, "time", Time)
    monkeypatch.setattr(sync_events, "sleep", told.append)
    with Points(KEY, URL, transport=httpx.MockTransport(answer)) as points:
        assert next(points.events.follow(after=0)).sequence == 1
    assert asked[:3] == [25, 0, 10]
    assert set(asked[2:]) == {10}


def event(sequence: int) -> dict[str, Any]:
    about = {"type": "batch.issued", "timestamp": "2026-01-31T09:30:00.000000Z", "id": "e", "sequence": sequence}
    return {**about, "sandbox": True, "organization": {"id": 1}, "data": {}}


def test_after_many_cancelled_sends_the_next_one_works() -> None:
    fake = FakePoints(balance=10_000)

    async def run() -> None:
        async with AsyncPoints(KEY, url) as points:
            for number in range(600):
                one = asyncio.create_task(points.send(**BODY, idempotency_key=f"k-{number}"))
                await asyncio.sleep(0.0007 * (number % 7))
                one.cancel()
                await asyncio.gather(one, return_exceptions=True)
            for number in (0, 300, 599, 600):
                sent = await points.send(**BODY, idempotency_key=f"k-{number}", wait_s=20)
                assert sent.status == "issued"

    with served(fake) as url:
        asyncio.run(run())
    assert len({one["id"] for one in fake.transactions}) == len(fake.transactions) == 10_000 - fake.balance


@pytest.mark.parametrize("part_size", [2, 10], ids=["two parts", "one part"])
@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["a@b.cc", "c@b.cc", "d@b.cc", " A@b.cc "], r"items\.3\.email is the same address as items\.0\.email"),
        (
            [{"email": "a@b.cc", "reference": "r"}, "b@b.cc", {"email": "c@b.cc", "reference": "r"}],
            r"items\.2\.reference is the same as items\.0\.reference",
        ),
        ([{"email": "a@b.cc", "reference": "r"}, "b@b.cc", "a@b.cc"], r"items\.2\.email is the same"),
    ],
)
def test_what_comes_again_is_refused_wherever_it_stands(items: list[Any], words: str, part_size: int) -> None:
    fake = FakePoints(balance=9)
    paid: list[str] = []
    with Points(KEY, URL, transport=fake) as points:
        run = points.send_all(items, run="r", amount=1, part_size=part_size)
        with pytest.raises(ValueError, match=words):
            paid.extend(iter(lambda: next(run).email, None))
    assert paid == [one["email"] for one in fake.transactions]
    assert len(paid) == (2 if part_size == 2 else 0)


def test_an_address_may_come_again_with_references_and_where_it_is_allowed() -> None:
    items = [{"email": "a@b.cc", "reference": f"r-{number}"} for number in range(4)]
    with Points(KEY, URL, transport=FakePoints()) as points:
        assert len(list(points.send_all(items, run="r", amount=1, part_size=2))) == 4
        twice = points.send_all(["a@b.cc", "b@b.cc", "a@b.cc"], run="s", amount=1, part_size=2, allow_repeats=True)
        assert len(list(twice)) == 3


def test_an_asynchronous_run_takes_both_kinds_of_iterables() -> None:
    async def emails() -> AsyncIterator[str]:
        for number in range(5):
            yield f"{number}@example.com"

    async def run() -> list[str]:
        async with AsyncPoints(KEY, URL, transport=FakePoints()) as points:
            found = [one.email async for one in points.send_all(emails(), run="r", amount=1, part_size=2)]
            return [*found, *[one.email async for one in points.send_all(["x@example.com"], run="s", amount=1)]]

    assert asyncio.run(run()) == [*(f"{number}@example.com" for number in range(5)), "x@example.com"]


def test_a_wait_is_logged_without_what_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    fake = FakePoints()
    fake.faults.append(httpx.Response(503, headers={"Retry-After": "0"}))
    with caplog.at_level(logging.INFO, "points_client"), Points(KEY, URL, transport=fake) as points:
        points.send(**BODY, idempotency_key="mine")
    [record] = [one for one in caplog.records if one.name == "points_client"]
    assert record.getMessage().startswith("POST /v1/points/send: The service answers 503 (waiting")
    assert "mine" not in record.getMessage()


def test_who_listens_to_waits_may_end_a_call_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _no_name)

    def stop(wait: Wait) -> None:
        assert wait.is_last
        raise Refused("enough")

    with Points(KEY, "http://nobody.invalid", on_wait=stop) as points, pytest.raises(Refused, match="enough"):
        points.organization()
