"""The client as the commands use it that call the service: each error becomes a sentence that says what to do."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from multiprocessing.pool import AsyncResult, ThreadPool
from typing import Any, TypeVar
from urllib.parse import urlsplit

from rich.text import Text

import points_client
from app.cli.tables import console
from app.errors import PointsError, Refused
from app.local.datadir import RUNNING_FILE, DataDir

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
# Also 500, because trying again is all that a person could do.
_RETRIED = points_client.RETRIED | {500}
_PLACE = re.compile(r"(?:recipients|items)\.(\d+)")

T = TypeVar("T")
R = TypeVar("R")


class NoAnswer(PointsError):
    """No clear answer came in time. A send may have been accepted all the same."""

    status = 503


class FaultyBody(Refused):
    """The service found faults in a body; `places` maps a faulty recipient's index to its sentence."""

    def __init__(self, status: int, errors: Mapping[str, Sequence[str]]) -> None:
        super().__init__(_sentences_of(errors))
        self.is_too_large = status == 413
        self.places = {int(place[1]): sentences[0] for key, sentences in errors.items() if (place := _PLACE.match(key))}


class NeverIssued(Refused):
    """The batch of a send was cancelled or rejected. Its key never opens another."""

    says = (
        "The batch was cancelled or rejected: nobody in it was debited. Send a corrected list; or, to send this one"
        " after all, name a new campaign with --again NAME."
    )


def running_url(data_dir: str) -> str:
    """Return the URL that `points up` has noted in the data directory.

    Raises:
        Refused: no service runs from there.
    """
    datadir = DataDir(data_dir)
    url = datadir.read(RUNNING_FILE).get("web_url")
    if url is None:
        raise Refused(
            f"No service runs from {datadir.path}: say where it is with --url, or start one with `points up`."
        )
    return str(url)


@cache
def say(sentence: str) -> None:
    """Say once on standard error why a call waits."""
    console(stderr=True).print(Text(sentence, "dim"), soft_wrap=True)


class Service:
    """Calls to the service with a single key; thread-safe. `say` gets a sentence that tells why a call waits."""

    def __init__(self, url: str, key: str, *, patience_s: float, say: Callable[[str], object] = say) -> None:
        self._url = url.rstrip("/")
        self._say = say
        self._was_reached = False
        self.wait_s = max(patience_s, 0.1)  # 0 would not wait for the batch.
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
        return self.answer(lambda points: points.organization())

    def verify(self, body: Mapping[str, Any]) -> points_client.Verified:
        return self.answer(lambda points: points.verify(**body))

    def sent_before(self, body: Mapping[str, Any], idempotency_key: str) -> points_client.SentBefore | None:
        """Tell who of a send's recipients was sent the same lately; None: an older service does not know the call."""
        same = {name: body[name] for name in ("recipients", "items", "amount", "label") if name in body}

        def ask(points: points_client.Points) -> points_client.SentBefore | None:
            try:
                return points.sent_before(**same, idempotency_key=idempotency_key)
            except points_client.NotFound:
                return None

        return self.answer(ask)

    def send(self, body: Mapping[str, Any], idempotency_key: str) -> points_client.Sent:
        """Issue a batch, or find the batch of an earlier call with this key; wait until it is committed.

        Raises:
            NoAnswer: the batch may have been accepted.
            PointsError: the batch was not accepted.
        """
        sent = self.answer(lambda points: points.send(**body, idempotency_key=idempotency_key, wait_s=self.wait_s))
        if sent.status == "awaiting_approval":
            raise NoAnswer(f"Batch {sent.batch_id} is accepted, and awaits an approval. Nothing is debited yet.")
        if sent.status != "issued":
            raise NoAnswer(f"Batch {sent.batch_id} is {sent.status}, and was not issued in the time of --patience.")
        return sent

    def answer(self, call: Callable[[points_client.Points], T]) -> T:
        """Return the answer to a call of the client.

        Raises:
            NoAnswer: only temporary faults until the time ran out, or no clear answer to a send that may be accepted.
            PointsError: the call was refused.
        """
        try:
            answer = call(self._points)
        except points_client.NoAnswer as error:
            raise NoAnswer(f"{error}") from None
        except points_client.PointsError as error:
            self._was_reached = True
            raise self._refusal(error) from None
        self._was_reached = True
        return answer

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
        is_over = error.code in ("batch_cancelled", "batch_rejected")
        return NeverIssued() if is_over else Refused(_sentences_of(errors))


def in_order(calls: Iterable[tuple[T, Callable[[], R]]], *, at_most: int) -> Iterator[tuple[T, AsyncResult[R]]]:
    """Yield each call's item and outcome, in order, while up to `at_most` calls run at the same time.

    The pool's threads are daemons: an answer that never comes does not keep the process alive. The client's `send_all`
    does not serve here: it yields transactions only, and a result file needs the batch of each part.
    """
    running: deque[tuple[T, AsyncResult[R]]] = deque()
    with ThreadPool(at_most) as pool:
        for item, call in calls:
            running.append((item, pool.apply_async(call)))
            if len(running) == at_most:
                yield running.popleft()
        yield from running


def _sentences_of(errors: Mapping[str, Sequence[str]]) -> str:
    return " ".join(sentence for sentences in errors.values() for sentence in sentences)
