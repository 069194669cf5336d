"""Posting an event to a receiver: one signed attempt with a deadline, and its outcome."""

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

from app.webhooks.attempts import Attempt
from app.webhooks.network import AnswerTooLong, Bounds, CheckedNetwork
from app.webhooks.receivers import Receiver, ReceiverRefused

ATTEMPT_TIMEOUT_S = 15.0
ANSWER_BYTES_MAX = 16 * 1_024
_USER_AGENT = "Points-Webhooks/1.0"


@dataclass(slots=True)
class _Answer:
    """The parts of an answer that arrived: its status, its Retry-After, and a word for why it is not complete."""

    status: int | None = None
    retry_after: str | None = None
    error: str | None = None


class Poster:
    """Posts to one receiver and keeps its connection between posts."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._bounds = Bounds()
        self._network = CheckedNetwork(receiver, self._bounds)
        self._pool = httpcore.ConnectionPool(
            ssl_context=_ssl_context() if receiver.scheme == "https" else None,
            max_connections=1,
            network_backend=self._network,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.close()

    def post(self, body: bytes, headers: Sequence[tuple[str, str]]) -> Attempt:
        """Make one attempt, within 15 s in all. Nothing that a receiver does makes it raise."""
        at, began = datetime.now(UTC), time.monotonic()
        self._bounds.set(seconds=ATTEMPT_TIMEOUT_S, answer_bytes=ANSWER_BYTES_MAX)
        answer = self._try(body, headers)
        ms = int((time.monotonic() - began) * 1_000)
        error = answer.error
        if answer.status is not None and error is None and not 200 <= answer.status < 300:
            error = "redirected" if 300 <= answer.status < 400 else "refused"
        return Attempt(
            at=at, ms=ms, status=answer.status, error=error, retry_after_s=_retry_after_s(answer.retry_after)
        )

    def _try(self, body: bytes, headers: Sequence[tuple[str, str]]) -> _Answer:
        """Post, and post again if a kept connection was lost before an answer: the receiver may just have closed it."""
        before = self._network.connections
        answer = self._ask(body, headers)
        if answer.status is None and answer.error in _LOST and self._network.connections == before:
            return self._ask(body, headers)
        return answer

    def _ask(self, body: bytes, headers: Sequence[tuple[str, str]]) -> _Answer:
        receiver, answer = self._receiver, _Answer()
        url = httpcore.URL(scheme=receiver.scheme, host=receiver.host, port=receiver.port, target=receiver.target)
        every = [("Host", receiver.host_header), ("User-Agent", _USER_AGENT), ("Content-Length", str(len(body)))]
        try:
            with self._pool.stream("POST", url, headers=[*every, *headers], content=body) as response:
                answer.status = response.status
                answer.retry_after = _header(response, b"retry-after")
                for _ in response.iter_stream():
                    pass  # So that the connection can be used again.
        except AnswerTooLong:  # The rest is not read; the connection is closed.
            answer.error = None if answer.status is not None else "broken_answer"
        except ReceiverRefused as refusal:
            answer.error = refusal.code
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            answer.error = _word_of(error)
        return answer


_LOST = ("connection_lost", "broken_answer")


def _word_of(error: Exception) -> str:
    if isinstance(error, httpcore.TimeoutException):
        return "timeout"
    if isinstance(error, httpcore.ConnectError):
        return "tls_failed" if any(isinstance(one, SSLError) for one in error.args) else "not_connected"
    return "connection_lost" if isinstance(error, httpcore.NetworkError) else "broken_answer"


def _header(response: httpcore.Response, wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in response.headers if name.lower() == wanted), None)


def signed_headers(body: bytes, *, event_id: str, secrets: Sequence[str], at: datetime) -> list[tuple[str, str]]:
    """Return the headers of Standard Webhooks: one signature for each secret (`whsec_…`).

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
    """Read Retry-After in both its forms: a number of seconds, or a moment."""
    if text is None:
        return None
    if text.strip().isascii() and text.strip().isdigit():
        return float(text.strip()[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
