"""How `points send` calls: plain about who may have accepted a send, and careful with the key."""

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from app.cli.service import NoAnswer, Service
from app.errors import Refused
from points_client import attempts
from points_client._sync import calling

URL = "https://points.example.com/shop"
BODY = {"recipients": ["ann@example.com"], "amount": 1}


def _envelope(data: dict[str, Any], **additional: object) -> dict[str, Any]:
    return {"success": True, "data": data, "errors": None, "additional_data": {"version": "1.0", **additional}}


MOMENT = "2026-01-31T09:30:00.000000Z"
ACME = {"id": 1, "name": "Acme", "is_disabled": False, "is_suspended": False, "balance": 9, "last_refill": 10}
ACME |= {"created_at": MOMENT}
ORGANIZATION = httpx.Response(200, json=_envelope(ACME))


_QUEUED = httpx.Response(
    202, json=_envelope({"batch_id": 7, "status": "queued"}, batch_id=7), headers={"Retry-After": "3"}
)


def _refused(status: int) -> httpx.Response:
    errors = {"x": ["No."]}
    return httpx.Response(status, json={"success": False, "data": None, "errors": errors, "additional_data": None})


class Calls:
    """A service whose answers are given, called by a clock that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.answers: list[httpx.Response | Exception] = []
        self.slept_s: list[float] = []

    def answer(self, _request: httpx.Request) -> httpx.Response:
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    monkeypatch.setattr(calling, "sleep", calls.sleep)
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=lambda: sum(calls.slept_s)))
    monkeypatch.setattr(attempts, "_between", lambda low, high: 1.0)  # No jitter.
    make = httpx.Client
    transport = httpx.MockTransport(calls.answer)
    monkeypatch.setattr(httpx, "Client", lambda **options: make(**options | {"transport": transport}))
    return calls


@pytest.fixture
def service(calls: Calls) -> Iterator[Service]:
    with closing(Service(URL, "pts_live_key", patience_s=60, say=lambda _sentence: None)) as made:
        yield made


@pytest.mark.parametrize(
    ("url", "is_overheard"),
    [
        ("http://points.example.com", True),
        ("https://points.example.com", False),
        ("http://127.0.0.1:8000", False),
        ("http://localhost:8000", False),
        ("http://[::1]:8000", False),
    ],
)
def test_a_key_that_travels_to_another_machine_unencrypted_may_be_overheard(url: str, is_overheard: bool) -> None:
    said: list[str] = []
    with closing(Service(url, "pts_live_key", patience_s=1, say=said.append)):
        assert any("unencrypted" in sentence for sentence in said) is is_overheard


@pytest.mark.parametrize(
    "answers",
    [
        [_QUEUED, _refused(401), _refused(401)],
        [httpx.ReadTimeout("lost"), _refused(401)],
        [httpx.Response(502), _refused(404)],
        [httpx.Response(200, text="<html>Welcome</html>")],
        [_QUEUED] * 50,
    ],
)
def test_whoever_may_have_accepted_a_send_is_not_said_to_have_refused_it(
    calls: Calls, service: Service, answers: list[httpx.Response | Exception]
) -> None:
    calls.answers = [ORGANIZATION, *answers]
    service.organization()
    with pytest.raises(NoAnswer):
        service.send(BODY, "key-1")


@pytest.mark.parametrize(
    "answers",
    [
        [_refused(401)],
        [_refused(422)],
        [httpx.Response(429), _refused(403)],
        [_QUEUED, _refused(404), _refused(403)],  # Refused under the lock: the key's answer is the batch's.
    ],
)
def test_who_has_refused_a_send_for_sure_is_said_to_have(
    calls: Calls, service: Service, answers: list[httpx.Response | Exception]
) -> None:
    calls.answers = answers
    with pytest.raises(Refused):
        service.send(BODY, "key-1")
