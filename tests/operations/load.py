"""Callers who send without pause while something is done to the service, and what and when they were answered."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx

from app.local import ports
from tests.deadline import comes_true
from tests.integration import books

_ANSWERED_IN_S = 60
# A caller thinks for a moment between two calls, where it is tested that none fails, and not how many there are.
PAUSE_S = 0.05


class Answer(NamedTuple):
    """A send's status, or the error in its place; when it was answered (`time.monotonic`), and after how long."""

    status: str
    at: float
    seconds: float


class Load:
    """Some callers, each on a connection that it keeps; every answer, and every call without one, is kept."""

    def __init__(self, port: int, *, callers: int, organizations: int, recipients: int, pause_s: float) -> None:
        self.answers: list[Answer] = []
        self.recipients = recipients
        self._pause_s = pause_s
        self._numbers = itertools.count()
        self._url = f"http://{ports.HOST}:{port}/v1/points/send"
        self._over = threading.Event()
        keys = [books.make_live_key(books.make_organization(10**12)) for _ in range(organizations)]
        self._callers = [
            threading.Thread(target=self._call, args=(keys[number % organizations],), daemon=True)
            for number in range(callers)
        ]

    def start(self) -> None:
        for caller in self._callers:
            caller.start()

    def stop(self) -> None:
        self._over.set()
        for caller in self._callers:
            caller.join()

    @property
    def statuses(self) -> Counter[str]:
        """How often each status was answered."""
        return Counter(answer.status for answer in list(self.answers))

    def goes_on(self, *, calls: int = 20) -> None:
        """Wait until so many more calls were answered."""
        wanted = len(self.answers) + calls
        assert comes_true(lambda: len(self.answers) >= wanted, within_s=_ANSWERED_IN_S), self.statuses

    def during(self, seconds: float) -> float:
        """Let them call for a while, and return how many sends a second were answered."""
        began = time.monotonic()
        time.sleep(seconds)
        ended = time.monotonic()
        return sum(began <= answer.at < ended for answer in list(self.answers)) / (ended - began)

    def _call(self, key: str) -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=_ANSWERED_IN_S) as client:
            while not self._over.is_set():
                began = time.monotonic()
                status = self._send(client, next(self._numbers))
                ended = time.monotonic()
                self.answers.append(Answer(status, ended, ended - began))
                time.sleep(self._pause_s)

    def _send(self, client: httpx.Client, number: int) -> str:
        recipients = [f"{number}.{place}@example.com" for place in range(self.recipients)]
        try:
            return str(client.post(self._url, json={"recipients": recipients, "amount": 1}).status_code)
        except httpx.HTTPError as error:
            return type(error).__name__


@contextmanager
def load(
    port: int, *, callers: int = 6, organizations: int = 1, recipients: int = 3, pause_s: float = PAUSE_S
) -> Iterator[Load]:
    """Let callers call while the block runs, from its first answers on."""
    made = Load(port, callers=callers, organizations=organizations, recipients=recipients, pause_s=pause_s)
    made.start()
    try:
        made.goes_on()
        yield made
    finally:
        made.stop()


def issued_exactly(made: Load) -> None:
    """See that each send was answered 201, has its transactions, and that the books balance."""
    assert set(made.statuses) == {"201"}, made.statuses
    assert books.counts() == (0, len(made.answers) * made.recipients)
    assert books.breaches() == []
