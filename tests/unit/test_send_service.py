"""How `points send` calls: patient with what passes, plain about what does not, and careful with the key."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from app.cli.service import FaultyBody, NoAnswer, Service
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
VERIFIED = {"code": None, "required": 1, "available": 1, "affordable_recipients": 1}
FLAGS = {"debited": True, "credited": False, "allocated": False, "sandbox": False}
TRANSACTIONS = [{"id": 1, "organization": ACME, "email": "ann@example.com", "amount": 1, "created_at": MOMENT, **FLAGS}]


def _queued(location: str) -> httpx.Response:
    data = {"batch_id": 7, "status": "queued"}
    return httpx.Response(202, json=_envelope(data, batch_id=7), headers={"Location": location, "Retry-After": "3"})


def _issued(**headers: str) -> httpx.Response:
    data = {"transactions": TRANSACTIONS, "amount": 1, "current_balance": 9}
    return httpx.Response(201, json=_envelope(data, batch_id=7), headers=headers)


def _refused(status: int, **errors: list[str]) -> httpx.Response:
    return httpx.Response(
        status, json={"success": False, "data": None, "errors": errors or {"x": ["No."]}, "additional_data": None}
    )


class Calls:
    """A service whose answers are given, called by a clock that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.answers: list[httpx.Response | Exception] = []
        self.requests: list[httpx.Request] = []
        self.slept_s: list[float] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
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


def _service(url: str, *, patience_s: float = 60) -> Service:
    return Service(url, "pts_live_key", patience_s=patience_s, say=lambda _sentence: None)


@pytest.fixture
def service(calls: Calls) -> Iterator[Service]:
    with closing(_service(URL)) as made:
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


class _Here(BaseHTTPRequestHandler):
    """A service on this machine, and a proxy for others, that tells which address it was asked for."""

    def do_GET(self) -> None:
        content = json.dumps(_envelope(ACME | {"name": self.path})).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def test_a_proxy_that_the_environment_names_is_for_the_world_outside_and_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with HTTPServer(("127.0.0.1", 0), _Here) as server:
        here = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("http_proxy", here)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        answering = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        answering.start()
        try:
            asked = []
            for url in (here, "http://points.example.com"):
                with closing(_service(url)) as service:
                    asked.append(service.organization().name)
        finally:
            server.shutdown()
            answering.join()
    assert asked == ["/v1/organization", "http://points.example.com/v1/organization"]


def test_a_network_that_goes_is_waited_for_but_one_that_never_was_there_is_not(calls: Calls, service: Service) -> None:
    gone = httpx.ConnectError("Connection refused")
    calls.answers = [gone]
    with pytest.raises(Refused, match="cannot be reached: Connection refused"):
        service.organization()
    calls.answers = [ORGANIZATION, gone, httpx.ReadTimeout("late"), ORGANIZATION]
    service.organization()
    service.organization()
    assert calls.slept_s == [0.5, 1]


@pytest.mark.parametrize("location", ["/v1/batches/7", "https://thief.example.com/v1/batches/7"])
def test_a_queued_batch_is_looked_at_until_it_is_issued_and_the_key_goes_nowhere_else(
    calls: Calls, service: Service, location: str
) -> None:
    batch = {"batch_id": 7, "idempotency_key": "key-1", "transactions": None, "amount": None, "current_balance": None}
    issued = {"status": "issued", "transactions": TRANSACTIONS, "amount": 1, "current_balance": 9}
    looks = [httpx.Response(200, json=_envelope(batch | now)) for now in ({"status": "queued"}, issued)]
    calls.answers = [_queued(location), *looks]
    sent = service.send(BODY, "key-1")
    assert (sent.batch_id, [one.id for one in sent.transactions], sent.current_balance) == (7, [1], 9)
    assert not sent.replayed, "it was issued by this very call"
    assert calls.slept_s == [3, 1]
    assert [(one.method, str(one.url)) for one in calls.requests] == [
        ("POST", f"{URL}/v1/points/send"),
        *[("GET", f"{URL}/v1/batches/7")] * 2,
    ]


@pytest.mark.parametrize(
    "answers",
    [
        [_queued(""), _refused(401), _refused(401)],
        [httpx.ReadTimeout("lost"), _refused(401)],
        [httpx.Response(502), _refused(404)],
        [httpx.Response(200, text="<html>Welcome</html>")],
        [_queued("")] * 50,
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
        [_queued(""), _refused(404), _refused(403)],  # Refused under the lock: the key's answer is the batch's.
    ],
)
def test_who_has_refused_a_send_for_sure_is_said_to_have(
    calls: Calls, service: Service, answers: list[httpx.Response | Exception]
) -> None:
    calls.answers = answers
    with pytest.raises(Refused):
        service.send(BODY, "key-1")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>Welcome</html>"),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"success": True, "data": None}),
        httpx.Response(404, text="Not here"),
        _refused(404),
    ],
)
def test_what_is_no_points_issuing_service_is_said_to_be_none(
    calls: Calls, service: Service, answer: httpx.Response
) -> None:
    calls.answers = [answer]
    with pytest.raises(Refused, match="Is the --url right"):
        service.organization()


def test_an_answer_about_other_recipients_than_those_sent_is_not_believed(calls: Calls, service: Service) -> None:
    data = {"transactions": TRANSACTIONS * 2, "amount": 2, "current_balance": 9}
    calls.answers = [httpx.Response(201, json=_envelope(data, batch_id=7))]
    with pytest.raises(NoAnswer, match="other recipients than those sent"):
        service.send(BODY, "key-1")


@pytest.mark.parametrize(
    ("answer", "is_too_large", "places"),
    [
        (httpx.Response(413, text="too large"), True, {}),
        (_refused(400, **{"recipients.3": ["Bad."]}), False, {3: "Bad."}),
        (_refused(400, **{"items.3.amount": ["Bad."], "items": ["Too much."]}), False, {3: "Bad."}),
        (_refused(400, amount=["One."], label=["Two."]), False, {}),
    ],
)
def test_a_faulty_body_is_told_by_what_is_wrong_with_it(
    calls: Calls, service: Service, answer: httpx.Response, is_too_large: bool, places: dict[int, str]
) -> None:
    calls.answers = [answer]
    with pytest.raises(FaultyBody) as caught:
        service.verify(BODY)
    assert (caught.value.is_too_large, caught.value.places) == (is_too_large, places)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_refused(400, amount=["One."], label=["Two."]), r"One\. Two\."),
        (_refused(403, organization=["Suspended."]), "Suspended."),
        (_refused(422), "--again NAME"),
        (_refused(401), "another with --key"),
        (httpx.Response(308, headers={"Location": "https://x.example/"}), "points to https://x.example/: give that as"),
    ],
)
def test_a_refusal_says_what_to_do(calls: Calls, service: Service, answer: httpx.Response, words: str) -> None:
    calls.answers = [answer]
    with pytest.raises(Refused, match=words):
        service.send(BODY, "key-1")


@pytest.mark.parametrize("url", ["http://a..b", f"http://{'x' * 64}.example"])
def test_a_host_that_can_have_no_name_is_not_reached(url: str) -> None:
    with closing(_service(url, patience_s=1)) as service, pytest.raises(Refused, match="cannot be reached"):
        service.organization()


def test_an_answer_that_cannot_be_unpacked_is_of_no_points_issuing_service(calls: Calls, service: Service) -> None:
    def broken(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=iter([b"no gzip"]), headers={"Content-Encoding": "gzip"})

    service._points._caller._http._transport = httpx.MockTransport(broken)
    with pytest.raises(NoAnswer, match="not as a Points Issuing Service does"):
        service.organization()


@pytest.mark.parametrize(
    ("proxy", "words"), [("socks5://127.0.0.1:9", "SOCKS proxy"), ("nonsense://127.0.0.1:9", "of a proxy")]
)
def test_a_proxy_that_cannot_be_used_is_said_to_be(monkeypatch: pytest.MonkeyPatch, proxy: str, words: str) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(Refused, match=words):
        Service(URL, "pts_live_key", patience_s=1, say=print)
