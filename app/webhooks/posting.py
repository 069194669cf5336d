"""Posting events to a receiver: an attempt is rendered, signed, sent within a deadline, and has an outcome."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from ssl import SSLContext, SSLError
from types import TracebackType
from typing import Self

import httpcore
import httpx
from standardwebhooks import Webhook

from app import logs
from app.event import Event, NotRenderable, render
from app.webhooks.allowed_receivers import Receiver, ReceiverRefused, parse
from app.webhooks.attempts import Attempt
from app.webhooks.network import AnswerTooLong, Bounds, CheckedNetwork

ATTEMPT_TIMEOUT_S = 15.0
ANSWER_BYTES_MAX = 16 * 1_024
_USER_AGENT = "Points-Webhooks/1.0"

_log = logs.logger()


@dataclass(slots=True)
class _Answer:
    """The parts of an answer that arrived: its status, the wait that it asks for, and a word for why it failed."""

    status: int | None = None
    retry_after_s: float | None = None
    error: str | None = None


class Poster:
    """Posts to one URL and keeps its connection between posts."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._bounds = Bounds()
        self._line: _Line | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._line is not None:
            self._line.pool.close()

    def attempt(self, event: Event, secrets: Sequence[str]) -> Attempt:
        """Make an attempt to deliver an event, within 15 s in all.

        It never raises: an attempt that left no trace would be made again at once, and for ever.

        Args:
            secrets: each signs.
        """
        at, began = datetime.now(UTC), time.monotonic()
        self._bounds.set(seconds=ATTEMPT_TIMEOUT_S, answer_bytes=ANSWER_BYTES_MAX)
        answer = _Answer()
        try:
            body = render(event)
            self._post(body, signed_headers(body, event_id=event.name, secrets=secrets, at=at), answer)
        except NotRenderable:
            answer.error = "not_renderable"
        except ReceiverRefused as refusal:
            answer.error = refusal.code
        except Exception as error:  # noqa: BLE001  # As above.
            answer.error = "internal_error"
            places = logs.places_of(error.__traceback__)
            _log.error("webhook_attempt_broke", event_id=event.id, places=places, **logs.kind_of(error))
        ms = int((time.monotonic() - began) * 1_000)
        return Attempt(at=at, ms=ms, status=answer.status, error=answer.error, retry_after_s=answer.retry_after_s)

    def _post(self, body: bytes, headers: Sequence[tuple[str, str]], answer: _Answer) -> None:
        """Post, and post again if a kept connection was lost before an answer: the receiver may just have closed it."""
        if self._line is None:
            self._line = _Line(parse(self._url), self._bounds)
        before = self._line.network.connections
        self._line.ask(body, headers, answer)
        if answer.status is None and answer.error in _LOST and self._line.network.connections == before:
            answer.error = None
            self._line.ask(body, headers, answer)


class _Line:
    """A connection to a receiver, made at the first call and again when it was lost."""

    def __init__(self, receiver: Receiver, bounds: Bounds) -> None:
        self._receiver = receiver
        self.network = CheckedNetwork(receiver, bounds)
        self.pool = httpcore.ConnectionPool(
            ssl_context=_ssl_context() if receiver.scheme == "https" else None,
            max_connections=1,
            network_backend=self.network,
        )

    def ask(self, body: bytes, headers: Sequence[tuple[str, str]], answer: _Answer) -> None:
        """Post a body, and write down what of the answer arrives."""
        receiver = self._receiver
        url = httpcore.URL(scheme=receiver.scheme, host=receiver.host, port=receiver.port, target=receiver.target)
        every = [("Host", receiver.host_header), ("User-Agent", _USER_AGENT), ("Content-Length", str(len(body)))]
        try:
            with self.pool.stream("POST", url, headers=[*every, *headers], content=body) as response:
                answer.status = response.status
                if not 200 <= response.status < 300:
                    answer.error = "redirected" if 300 <= response.status < 400 else "refused"
                    answer.retry_after_s = _retry_after_s(_header(response, b"retry-after"))
                for _ in response.iter_stream():
                    pass  # So that the connection can be used again.
        except httpcore.TimeoutException:
            answer.error = "timeout"
        except (AnswerTooLong, httpcore.NetworkError, httpcore.ProtocolError) as error:
            if answer.status is None:  # Else it is known, and only the status counts.
                answer.error = _word_of(error)


_LOST = ("connection_lost", "broken_answer")


def _word_of(error: Exception) -> str:
    if isinstance(error, httpcore.ConnectError):
        return "tls_failed" if any(isinstance(cause, SSLError) for cause in error.args) else "not_connected"
    return "connection_lost" if isinstance(error, httpcore.NetworkError) else "broken_answer"


def _header(response: httpcore.Response, wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in response.headers if name.lower() == wanted), None)


def signed_headers(body: bytes, *, event_id: str, secrets: Sequence[str], at: datetime) -> list[tuple[str, str]]:
    """Return the headers of Standard Webhooks: a signature for each secret (`whsec_…`).

    Args:
        at: the moment of the attempt, in UTC.
    """
    signatures = [Webhook(secret).sign(event_id, at, body.decode()) for secret in secrets]
    return [
        ("Content-Type", "application/json"),
        ("webhook-id", event_id),
        ("webhook-timestamp", str(int(at.timestamp()))),
        ("webhook-signature", " ".join(signatures)),
    ]


@lru_cache(maxsize=1)
def _ssl_context() -> SSLContext:
    """Return a context that trusts certifi's authorities, or those of SSL_CERT_FILE. Reading them is slow."""
    return httpx.create_ssl_context()


def _retry_after_s(text: str | None) -> float | None:
    """Read Retry-After in both its forms, a number of seconds or a moment; None if it is neither."""
    if text is None:
        return None
    if text.strip().isascii() and text.strip().isdigit():
        return float(text.strip()[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
