"""Posting to a receiver that behaves well, badly, or worse, on the loopback address, and over TLS."""

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from standardwebhooks import Webhook

from app.events.payloads import Event, render
from app.settings import settings
from app.webhooks import posting
from app.webhooks.attempts import Attempt
from app.webhooks.network import Bounds
from app.webhooks.posting import ANSWER_BYTES_MAX, Poster, signed_headers
from app.webhooks.receivers import parse, resolve
from app.webhooks.secrets import new_secret
from tests.ports import free_port
from tests.receiver import Receiver, close_in_the_middle, drip, flood, hang, status

_BODY = '{"type":"ping","data":{"ü":1}}'.encode()


@pytest.fixture(autouse=True)
def _loopback_is_allowed(environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WEBHOOK_ALLOW", "127.0.0.0/8")
    settings.cache_clear()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


_EVENT = Event(
    id=1,
    organization_id=7,
    sandbox=False,
    sequence=3,
    type="ping",
    created_at=datetime(2026, 1, 31, tzinfo=UTC),
    data={"webhook": {"url": "https://ü.example.com/"}},
)
_SECRETS = [new_secret()]


def _post(url: str) -> Attempt:
    with Poster(url) as poster:
        return poster.attempt(_EVENT, _SECRETS)


def test_the_body_and_the_headers_arrive_as_they_were_given(receiver: Receiver) -> None:
    attempt = _post(receiver.url)
    assert (attempt.status, attempt.error) == (200, None)
    [call] = receiver.calls
    assert call.body == render(_EVENT)
    assert (call.headers["webhook-id"], call.headers["host"]) == ("evt_1", f"127.0.0.1:{receiver.port}")


@pytest.mark.parametrize(
    ("code", "error"),
    [(200, None), (204, None), (299, None), (300, "redirected"), (400, "refused"), (410, "refused"), (503, "refused")],
)
def test_only_a_2xx_is_a_success(receiver: Receiver, code: int, error: str | None) -> None:
    receiver.answer = status(code)
    assert (_post(receiver.url).status, _post(receiver.url).error) == (code, error)


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    with Receiver().running() as elsewhere:
        receiver.answer = status(307, Location=elsewhere.url)
        assert _post(receiver.url).error == "redirected"
        assert elsewhere.calls == []


def test_no_proxy_of_the_environment_is_asked(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert _post(receiver.url).error is None


def test_of_a_long_answer_the_beginning_is_read_and_the_status_counts(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    counted = Bounds.count

    def count(bounds: Bounds, size: int) -> None:
        read.append(size)
        counted(bounds, size)

    monkeypatch.setattr(Bounds, "count", count)
    receiver.answer = flood
    attempt = _post(receiver.url)
    assert (attempt.status, attempt.error) == (200, None)
    assert sum(read) == ANSWER_BYTES_MAX


def test_an_answer_that_ends_in_the_middle_is_a_failure(receiver: Receiver) -> None:
    receiver.answer = close_in_the_middle
    assert (_post(receiver.url).status, _post(receiver.url).error) == (200, "broken_answer")


@pytest.mark.parametrize(("answer", "code"), [(drip, 200), (hang, None)])
def test_an_attempt_has_one_end_whatever_is_dripped(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, answer: Any, code: int | None
) -> None:
    monkeypatch.setattr(posting, "ATTEMPT_TIMEOUT_S", 1.5)
    receiver.answer = answer
    began = time.monotonic()
    attempt = _post(receiver.url)
    assert 1.5 <= time.monotonic() - began < 5
    assert (attempt.status, attempt.error) == (code, "timeout")


def test_nobody_listens() -> None:
    attempt = _post(f"http://127.0.0.1:{free_port()}/")
    assert (attempt.status, attempt.error) == (None, "not_connected")


def test_what_is_no_http_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        with Poster(f"http://127.0.0.1:{server.getsockname()[1]}/") as poster:

            def talk() -> None:
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                    connection.recv(65_536)

            thread = threading.Thread(target=talk)
            thread.start()
            assert poster.attempt(_EVENT, _SECRETS).error in ("broken_answer", "connection_lost")
            thread.join()


def test_a_connection_is_kept_and_one_that_was_closed_meanwhile_is_made_anew(receiver: Receiver) -> None:
    ports: list[int] = []

    def answer(handler: Any) -> None:
        ports.append(handler.client_address[1])
        status(200)(handler)
        if len(ports) == 2:
            handler.close_connection = True  # Without a word in its answer.

    receiver.answer = answer
    with Poster(receiver.url) as poster:
        assert [poster.attempt(_EVENT, _SECRETS).error for _ in range(4)] == [None] * 4
    assert ports[0] == ports[1] != ports[2] == ports[3]


def test_a_name_that_changes_its_answer_between_check_and_connect_gains_nothing(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of the registration saw a public address; at the connect the name leads to the loopback one."""
    monkeypatch.delenv("POINTS_WEBHOOK_ALLOW")
    settings.cache_clear()
    answers = iter(["8.8.8.8", "127.0.0.1"])
    asked: list[str] = []

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, 1, 6, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    rebound = f"https://hook.example.com:{receiver.port}/"
    assert resolve(parse(rebound), timeout_s=5) == [ip_address("8.8.8.8")]
    assert _post(rebound).error == "address_refused"
    assert asked == ["hook.example.com"] * 2
    assert receiver.calls == []


def test_the_connection_goes_to_the_address_that_was_checked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is asked for once: what it would answer next does not matter."""
    real = socket.getaddrinfo
    asked: list[str] = []

    def look_up(host: str, port: int, *rest: Any, **more: Any) -> list[Any]:
        if host != "hook.internal":  # `socket.create_connection` asks for the address itself.
            return real(host, port, *rest, **more)
        asked.append(host)
        return [(socket.AF_INET, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert _post(f"http://hook.internal:{receiver.port}/").error is None
    assert asked == ["hook.internal"]
    assert receiver.calls[0].headers["host"] == f"hook.internal:{receiver.port}"


def _certificate(folder: Path, name: str) -> Path:
    """Make a certificate that vouches for itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.mark.parametrize(("name", "error"), [("hook.internal", None), ("other.internal", "tls_failed")])
def test_tls_asks_for_the_name_although_the_connection_goes_to_an_address(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, error: str | None
) -> None:
    certificate = _certificate(tmp_path, name)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    posting._ssl_context.cache_clear()
    asked: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, asked_for, _context: asked.append(asked_for)
    receiver._server.socket = context.wrap_socket(receiver._server.socket, server_side=True)
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **more: real("127.0.0.1" if host == "hook.internal" else host, *rest, **more),
    )
    try:
        assert _post(f"https://hook.internal:{receiver.port}/").error == error
    finally:
        posting._ssl_context.cache_clear()
    assert asked == ["hook.internal"]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *(("120", 120), (" 7 ", 7), ("0", 0), ("soon", None), ("-3", None), ("", None), ("9" * 400, 999_999_999)),
        *(("NaN", None), ("1e400", None), ("Thu, 99 Foo 99999", None), ("Thu, 01 Jan 99999 00:00:00 GMT", None)),
        ("Thu, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Thu, 01 Jan 2026 00:00:00 +99999999999999999999", None),
    ],
)
def test_retry_after_is_read_as_seconds(receiver: Receiver, header: str, seconds: float | None) -> None:
    receiver.answer = status(503, Retry_After=header)
    assert _post(receiver.url).retry_after_s == seconds


def test_retry_after_is_read_as_a_moment(receiver: Receiver) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=90)
    receiver.answer = status(503, Retry_After=moment.strftime("%a, %d %b %Y %H:%M:%S GMT"))
    found = _post(receiver.url).retry_after_s
    assert found is not None
    assert 80 <= found <= 90
    receiver.answer = status(503, Retry_After="Fri, 01 Jan 2021 00:00:00 GMT")
    assert _post(receiver.url).retry_after_s == 0


def test_each_secret_signs_as_the_library_verifies() -> None:
    secrets = [new_secret(), new_secret()]
    headers = dict(signed_headers(_BODY, event_id="evt_7", secrets=secrets, at=datetime.now(UTC)))
    for secret in secrets:
        assert Webhook(secret).verify(_BODY, headers) == {"type": "ping", "data": {"ü": 1}}
    assert len(headers["webhook-signature"].split()) == 2


def test_a_signature_is_what_openssl_makes_of_it(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, so it was not asked")
    secret = new_secret()
    headers = dict(signed_headers(_BODY, event_id="evt_7", secrets=[secret], at=datetime.now(UTC)))
    signed = tmp_path / "signed"
    signed.write_bytes(f"evt_7.{headers['webhook-timestamp']}.".encode() + _BODY)
    script = (
        'key=$(printf %s "${SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d " \\n");'
        ' openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary "$FILE" | openssl base64 -A'
    )
    environment = {"SECRET": secret, "FILE": str(signed), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert headers["webhook-signature"] == f"v1,{done.stdout}"
