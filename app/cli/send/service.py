"""The client as `points send` and `points reverse` use it: each error becomes a sentence that says what to do."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import points_client
from app.cli.send.answers import FaultyBody, NoAnswer, sentences_of
from app.errors import Refused
from app.settings import INT64_MAX

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
# Also 500, because trying again is all that a person could do.
_RETRIED = points_client.RETRIED | {500}

T = TypeVar("T")


class Service:
    """Calls to the service with one key; thread-safe. `say` gets a sentence that tells why a call waits."""

    def __init__(self, url: str, key: str, *, patience_s: float, say: Callable[[str], object]) -> None:
        self._url = url.rstrip("/")
        self._wait_s = max(patience_s, 0.1)  # 0 would not wait for the batch.
        self._say = say
        self._was_reached = False
        try:
            parts = urlsplit(self._url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise Refused(f"The URL {self._url} must begin with http:// or https:// and name a host.")
            self._points = points_client.Points(
                key, self._url, patience_s=patience_s, on_wait=self._waits, retried=_RETRIED
            )
        except (ImportError, ValueError):  # ImportError: a SOCKS proxy.
            raise Refused(
                "The URL is not valid, or that of a proxy in the environment is not (a SOCKS proxy cannot be used)."
            ) from None
        if parts.scheme == "http" and parts.hostname not in _LOCAL_HOSTS:
            say(f"The key travels to {self._url} unencrypted: prefer https://.")

    def close(self) -> None:
        self._points.close()

    def organization(self) -> points_client.Organization:
        """Return the key's organization, with the balance of the key's mode."""
        return self._made(self._points.organization)

    def verify(self, body: Mapping[str, Any]) -> points_client.Verified:
        return self._made(lambda: self._points.verify(**body))

    def amount_max(self) -> int:
        """Return the most points for one recipient: the service names the limit when asked for more."""
        try:
            self.verify({"recipients": ["anyone@example.com"], "amount": INT64_MAX})
        except FaultyBody as error:
            if limit := re.search(r"between 1 and (\d+)", error.sentence):
                return int(limit[1])
            raise
        return INT64_MAX

    def send(self, body: Mapping[str, Any], idempotency_key: str) -> points_client.Sent:
        """Issue a batch, or find the batch of an earlier call with this key; wait until it is committed.

        Raises:
            NoAnswer: the batch may have been accepted.
            PointsError: the batch was not accepted.
        """
        sent = self._made(lambda: self._points.send(**body, idempotency_key=idempotency_key, wait_s=self._wait_s))
        if sent.status != "issued":
            raise NoAnswer(f"Batch {sent.batch_id} is {sent.status}, and was not issued in the time of --patience.")
        return sent

    def verify_reverse(self, body: Mapping[str, Any]) -> points_client.Recoverable:
        return self._made(lambda: self._points.verify_reverse(**body))

    def reverse(self, body: Mapping[str, Any], idempotency_key: str) -> points_client.Reversed:
        """Take points back, and return the result; wait until it is committed.

        Raises:
            NoAnswer: the reversal may have been accepted.
            PointsError: it was not accepted.
        """
        found = self._made(lambda: self._points.reverse(**body, idempotency_key=idempotency_key, wait_s=self._wait_s))
        if found.status != "done":
            raise NoAnswer(f"Reversal {found.reversal_id} is queued, and was not done in the time of --patience.")
        return found

    def last_sequence(self) -> int:
        """Return the sequence of the last event of the log."""
        return self._made(self._points.events.last_sequence)

    def follow(self, *, after: int, types: str | None) -> Iterator[points_client.Event]:
        """Yield the events after a sequence as they happen, without end; `types` are separated by commas."""
        followed = self._points.events.follow(after=after, types=None if types is None else [types])
        while True:
            yield self._made(lambda: next(followed))

    def _made(self, call: Callable[[], T]) -> T:
        """Make a call.

        Raises:
            NoAnswer: only temporary faults until the time ran out, or no clear answer to a send that may be accepted.
            PointsError: the call was refused.
        """
        try:
            found = call()
        except points_client.NoAnswer as error:
            raise NoAnswer(f"{error}") from None
        except points_client.PointsError as error:
            self._was_reached = True
            raise self._refusal(error) from None
        self._was_reached = True
        return found

    def _waits(self, wait: points_client.Wait) -> None:
        """Say why a call waits. A service that was never reached is not waited for."""
        self._was_reached |= wait.status is not None
        if not self._was_reached:
            raise Refused(f"{self._url} cannot be reached: {wait.error}. Is the --url right?")
        self._say(f"{wait.trouble}; asking again in {max(1, round(wait.seconds))} s")

    def _refusal(self, error: points_client.PointsError) -> Refused:
        """Return a refusal that says what to do."""
        status, errors = error.status, error.errors
        if error.location is not None:
            return Refused(f"{self._url} points to {error.location}: give that as --url.")
        if status == 413 or (status == 400 and errors):
            return FaultyBody(status, errors)
        if not errors or (status == 404 and errors.keys() != {"batch"}):
            answers = "answers" if status is None else f"answers {status}"
            return Refused(f"{self._url} {answers}, but not as a Points Issuing Service does. Is the --url right?")
        if status == 401:
            return Refused(
                f"{self._url} does not know this key, or it was revoked: give another with --key or POINTS_KEY."
            )
        if status == 422:
            return Refused(
                "An earlier run has sent this part in another form: an amount of its lines, --atomic or the limit of"
                " recipients has changed since. Give the list and the command as they were then, and the difference in"
                " another list; or, to pay everybody once more, name a new campaign with --again NAME."
            )
        return Refused(sentences_of(errors))
