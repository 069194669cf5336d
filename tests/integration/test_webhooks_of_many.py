"""A delivering worker with many webhooks: however many receivers are slow, another's event is delivered beside them."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import pytest

from app.webhooks import delivery, posting
from app.webhooks.attempts import Attempt
from app.webhooks.posting import Poster
from tests.deadline import until
from tests.integration import books, hooks
from tests.receiver import Receiver, status

pytestmark = pytest.mark.usefixtures("database")

_THREADS = 16


class _Slow(Receiver):
    """A receiver that answers nobody before it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()
        self.answer = self._answer_later

    def _answer_later(self, handler: BaseHTTPRequestHandler) -> None:
        self.released.wait()
        status(200)(handler)


@pytest.fixture(autouse=True)
def _settings(environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks.allow_receivers_here(monkeypatch)


@pytest.fixture
def quick() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


@pytest.fixture
def slow() -> Iterator[_Slow]:
    receiver = _Slow()
    with receiver.running():
        yield receiver
        receiver.released.set()


@pytest.fixture
def delivering(slow: _Slow, quick: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Deliver with 16 threads. No attempt is given up: who waits behind a slow receiver waits for ever."""
    from worker import deliveries  # noqa: PLC0415  # It needs the settings of a test.

    monkeypatch.setattr(posting, "ATTEMPT_TIMEOUT_S", 3_600.0)
    monkeypatch.setattr(deliveries, "_stopping", threading.Event())
    look = deliveries.Look(SimpleNamespace(concurrency=_THREADS))
    look.start(None)
    yield
    look.stop(None)
    slow.released.set()
    for thread in threading.enumerate():
        if thread.name.startswith(("look", "deliveries")):
            thread.join()


def _organization(url: str, *, webhooks: int, are_slow: bool = False) -> None:
    """Make an organization with so many webhooks, each with an event to deliver."""
    organization_id = books.make_organization(100)
    hooks.number(organization_id)
    made = [hooks.make(organization_id, url).id for _ in range(webhooks)]
    if are_slow:
        books.execute(f"UPDATE webhooks SET is_slow = true WHERE id = ANY(ARRAY{made})")
    hooks.write(organization_id, "key.created")


@pytest.mark.usefixtures("delivering")
def test_ten_slow_receivers_of_each_of_two_organizations_take_no_thread_from_a_third(
    slow: _Slow, quick: Receiver
) -> None:
    for _ in range(2):
        _organization(slow.url, webhooks=10)
    until(lambda: len(slow.calls) == 10, "the slow receivers are asked")
    _organization(quick.url, webhooks=1)
    until(lambda: quick.calls, "the quick receiver is asked beside them")
    assert len(slow.calls) == 10
    slow.released.set()
    until(lambda: len(slow.calls) == 20, "each slow receiver has its turn")


@pytest.mark.usefixtures("delivering")
def test_slow_receivers_of_any_number_of_organizations_leave_threads_to_the_others(
    slow: _Slow, quick: Receiver
) -> None:
    for _ in range(14):
        _organization(slow.url, webhooks=1, are_slow=True)
    until(lambda: len(slow.calls) == 12, "the slow receivers are asked")
    _organization(quick.url, webhooks=1)
    until(lambda: quick.calls, "the quick receiver is asked beside them")
    assert len(slow.calls) == 12
    slow.released.set()
    until(lambda: len(slow.calls) == 14, "each slow receiver has its turn")


def test_a_receiver_is_slow_while_its_last_attempt_took_a_second_or_more(
    quick: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization_id = books.make_organization(100)
    hooks.number(organization_id)
    webhook = hooks.make(organization_id, quick.url)
    seen = []
    for ms, code in ((999, 200), (1_000, 200), (0, 200), (15_000, 503), (20, 503)):
        attempt = Attempt(at=datetime.now(UTC), ms=ms, status=code, error=None if code == 200 else "refused")
        monkeypatch.setattr(Poster, "attempt", lambda *_, attempt=attempt: attempt)
        hooks.write(organization_id, "key.created")
        delivery.deliver(webhook.id, tell=lambda _: None)
        hooks.write(organization_id, "key.created")
        books.execute("UPDATE webhooks SET retry_at = clock_timestamp()")
        [found] = hooks.due()
        seen.append(found.is_slow)
    assert seen == [False, True, False, True, False]
