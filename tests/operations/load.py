"""Callers who send without pause while something is done to the service, and what they were answered."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from app.local import ports
from tests.deadline import comes_true
from tests.integration import books

_CALLERS = 6
RECIPIENTS = 3
_ANSWERED_IN_S = 60

# A caller thinks for a moment between two calls: what is tested is that none fails, and not how many there are.
_PAUSE_S = 0.05


class Load:
    """Some callers, each on a connection that it keeps; every answer, and every call without one, is counted."""

    def __init__(self, port: int) -> None:
        self.answers: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._url = f"http://{ports.HOST}:{port}/v1/points/send"
        self._key = books.make_live_key(books.make_organization(10**12))
        self._over = threading.Event()
        self._callers = [threading.Thread(target=self._call, daemon=True) for _ in range(_CALLERS)]

    def start(self) -> None:
        for caller in self._callers:
            caller.start()

    def stop(self) -> None:
        self._over.set()
        for caller in self._callers:
            caller.join()

    def goes_on(self, *, calls: int = 20) -> None:
        """Wait until so many more calls were answered."""
        before = self.answers.total()
        assert comes_true(lambda: self.answers.total() >= before + calls, within_s=_ANSWERED_IN_S), self.answers

    def _call(self) -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {self._key}"}, timeout=_ANSWERED_IN_S) as client:
            while not self._over.is_set():
                self.answers[self._send(client, next(self._numbers))] += 1
                time.sleep(_PAUSE_S)

    def _send(self, client: httpx.Client, number: int) -> str:
        recipients = [f"{number}.{place}@example.com" for place in range(RECIPIENTS)]
        try:
            return str(client.post(self._url, json={"recipients": recipients, "amount": 1}).status_code)
        except httpx.HTTPError as error:
            return type(error).__name__


@contextmanager
def load(port: int) -> Iterator[Load]:
    """Let callers call while the block runs, from its first answers on."""
    made = Load(port)
    made.start()
    try:
        made.goes_on()
        yield made
    finally:
        made.stop()


def issued_exactly(answers: Counter[str]) -> None:
    """See that each send was answered 201, has its transactions, and that the books balance."""
    assert set(answers) == {"201"}, answers
    assert books.counts() == (0, answers["201"] * RECIPIENTS)
    assert books.breaches() == []
