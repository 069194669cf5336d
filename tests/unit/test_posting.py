"""Posting to a receiver that behaves well, badly, or worse, on the loopback address, and over TLS."""

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.event import Event
from app.settings import settings
from app.webhooks import posting
from app.webhooks.actions import new_secret
from app.webhooks.allowed_receivers import parse, resolve
from app.webhooks.attempts import Attempt
from app.webhooks.network import Bounds
from app.webhooks.posting import ANSWER_BYTES_MAX, Poster
from tests.ports import free_port
from tests.receiver import Receiver, close_in_the_middle, drip, flood, hang, status


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


def test_of_an_answer_that_ends_in_the_middle_the_status_counts(receiver: Receiver) -> None:
    receiver.answer = close_in_the_middle
    assert (_post(receiver.url).status, _post(receiver.url).error) == (200, None)


@pytest.mark.parametrize(("answer", "code"), [(drip, 200), (hang, None)])
def test_an_attempt_has_one_end_whatever_is_dripped(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, answer: Any, code: int | None
) -> None:
    monkeypatch.setattr(posting, "ATTEMPT_TIMEOUT_S", 0.5)
    receiver.answer = answer
    attempt = _post(receiver.url)
    assert (attempt.status, attempt.error) == (code, "timeout")


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
