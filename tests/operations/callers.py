"""Eight callers who send without pause, and when each answer came: what a server that goes away costs them."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx

from app.local import ports
from tests.integration import books

CALLERS = 8
ANSWERED_IN_S = 60


class Answer(NamedTuple):
    """A send's status, when it was answered (`time.monotonic`), and after how long."""

    status: str
    at: float
    seconds: float


class Callers:
    """Each sends for an organization of its own or shares it with three others, on a connection that it keeps."""

    def __init__(self, port: int) -> None:
        self.answers: list[Answer] = []
        self._url = f"http://{ports.HOST}:{port}/v1/points/send"
        self._numbers = itertools.count()
        self._over = threading.Event()
        keys = [books.make_live_key(books.make_organization(10**12)) for _ in range(2)]
        self._threads = [threading.Thread(target=self._call, args=(keys[n % 2],)) for n in range(CALLERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def per_s(self, began: float, ended: float) -> float:
        """Return how many sends a second were answered between two moments."""
        return sum(began <= answer.at < ended for answer in list(self.answers)) / (ended - began)

    def during(self, seconds: float) -> float:
        """Let them call for a while, and return how many sends a second were answered."""
        began = time.monotonic()
        time.sleep(seconds)
        return self.per_s(began, time.monotonic())

    def _call(self, key: str) -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=ANSWERED_IN_S) as client:
            while not self._over.is_set():
                began = time.monotonic()
                try:
                    body = {"recipient": f"{next(self._numbers)}@example.com", "amount": 1}
                    status = str(client.post(self._url, json=body).status_code)
                except httpx.HTTPError as error:
                    status = type(error).__name__
                ended = time.monotonic()
                self.answers.append(Answer(status, ended, ended - began))


@contextmanager
def callers(port: int) -> Iterator[Callers]:
    """Let them call while the block runs."""
    made = Callers(port)
    made.start()
    try:
        yield made
    finally:
        made.stop()
