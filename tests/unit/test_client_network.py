"""What networks, processes and event loops do to a client: silence, certificates, names, forks, cancellation."""

import asyncio
import contextlib
import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from points_client import AsyncPoints, NoAnswer, NotAccepted, Points, PointsError, Refused, Wait
from points_client.testing import KEY, URL, FakePoints
from tests.client_halves import HALVES, points_of
from tests.forks import in_children

BODY: dict[str, Any] = {"recipients": ["ann@example.com"], "amount": 1}
CHILDREN, SENDS = 4, 5
of_forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@contextlib.contextmanager
def served(fake: FakePoints, tls: ssl.SSLContext | None = None) -> Iterator[str]:
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

        def handle_error(self, *_: object) -> None:
            pass  # Who does not trust it breaks the handshake off.

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://localhost:{server.server_address[1]}"
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


def _tls(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return what serves TLS with a certificate of this machine that signs itself, and the certificate."""
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
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    return context, certificate


def _told(half: str, url: str, **options: Any) -> str:
    """Return what a client says of a service that cannot be reached. With patience it would wait for a minute."""
    waits: list[Wait] = []
    with points_of(half, KEY, url, on_wait=waits.append, **options) as points, pytest.raises(NotAccepted) as none:
        points.organization()
    assert [wait.is_last for wait in waits] in ([True], []), "what cannot heal is not tried again"
    return str(none.value)


@pytest.mark.parametrize("half", HALVES)
def test_a_certificate_is_trusted_as_the_caller_says(
    half: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    context, certificate = _tls(tmp_path)
    with served(FakePoints(balance=7), context) as url:
        sentence = _told(half, url)
        assert "certificate is not trusted (self-signed certificate)" in sentence
        assert "ssl_context=" in sentence
        with points_of(half, KEY, url, ssl_context=ssl.create_default_context(cafile=certificate)) as points:
            assert points.organization().balance == 7
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with points_of(half, KEY, url) as points:
            assert points.organization().balance == 7
    for named in (tmp_path / "missing.pem", tmp_path / "key.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(named))
        with pytest.raises(ValueError, match=f"SSL_CERT_FILE names {named}"):
            Points(KEY, url)


def _no_name(*_: object, **__: object) -> None:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.mark.parametrize("half", HALVES)
def test_what_cannot_heal_says_why(half: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", _no_name)
        assert "its name is not known" in _told(half, "http://nobody.invalid")
    with served(FakePoints()) as url:
        assert "does not speak TLS" in _told(half, url.replace("http:", "https:"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert "Connection refused" in _told(half, f"http://127.0.0.1:{port}", patience_s=0)
    for name, value in (("ALL_PROXY", "socks5://127.0.0.1:9"), ("HTTP_PROXY", "nonsense://x")):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            with pytest.raises(ValueError, match="proxy that the environment names"):
                Points(KEY, "http://points.example.com")


@pytest.mark.parametrize("half", HALVES)
def test_who_listens_to_waits_may_end_a_call_that_cannot_be_made(half: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _no_name)

    def stop(wait: Wait) -> None:
        assert wait.is_last
        raise Refused("enough")

    with pytest.raises(Refused, match="enough"), points_of(half, KEY, "http://nobody.invalid", on_wait=stop) as points:
        points.organization()


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


@of_forks
def test_one_asynchronous_client_is_used_in_several_event_loops_and_after_a_fork() -> None:
    fake = FakePoints(balance=10_000)
    with served(fake) as url:
        points = AsyncPoints(KEY, url)

        async def send(email: str, *, close: bool = False) -> None:
            sent = await points.send(recipients=[email], amount=1)
            assert [one.email for one in sent.transactions] == [email]
            if close:
                await points.close()

        def work(child: int) -> None:
            for number in range(SENDS):
                asyncio.run(send(f"{child}-{number}@example.com"))

        asyncio.run(send("last@example.com", close=True))
        assert in_children(work, CHILDREN) == [0] * CHILDREN
    assert fake.balance == 10_000 - CHILDREN * SENDS - 1


@of_forks
def test_a_transport_of_ones_own_is_not_shared_with_a_child() -> None:
    with served(FakePoints()) as url, Points(KEY, url, transport=httpx.HTTPTransport()) as points:
        points.organization()

        def work(_child: int) -> None:
            with pytest.raises(PointsError, match="make other Points"):
                points.organization()

        assert in_children(work, 1) == [0]
