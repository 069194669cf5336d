"""Bad input, over HTTP: each case gets its documented status and envelope, within a second, and writes nothing."""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from sqlalchemy import text

from tests.deadline import until
from tests.e2e.bad_input import framing, headers, json_forms, numbers, paths, queries, recipients, texts
from tests.e2e.bad_input.cases import CANARY, GOOD, KEY, SEND, VERIFY, BodyCase, RawCase, call
from tests.e2e.raw_http import Answer, exchange, seconds_until_it_is_over
from tests.service.inside import Organization, Service

pytestmark = pytest.mark.alone

_ANSWERED_WITHIN_S = 1.0
# Who withholds bytes waits longer, but not for ever: each holds a thread of the front end.
_OVER_WITHIN_S = 25.0

Books = Callable[[], tuple[int, ...]]

_BALANCE = 1_000_000_000_000


@pytest.fixture(scope="module")
def caller(service: Service) -> Organization:
    """Make an organization that could pay for every case, if one were let through."""
    return service.organization(_BALANCE, sandbox_balance=_BALANCE)


@pytest.fixture(scope="module")
def books(service: Service) -> Iterator[Books]:
    """Read what a request could have written: rows of everything, points of every organization."""
    engine = service.new_engine().execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield lambda: tuple(connection.execute(_BOOKS).one())
    engine.dispose()


_BOOKS = text("""
    SELECT (SELECT max(id) FROM batches), (SELECT max(batch_id) FROM transactions),
           (SELECT max(id) FROM refills), (SELECT max(id) FROM users), (SELECT max(id) FROM api_keys),
           max(id), sum(balance), sum(sandbox_balance) FROM organizations
""")


@pytest.fixture(scope="module", autouse=True)
def unfinished(service: Service, caller: Organization) -> Iterator[dict[str, Future[float]]]:
    """Begin requests that are never ended, before the cases: they must not keep those from being answered."""
    trickled = {f"{name}, a byte at a time": request for name, request in framing.UNFINISHED.items()}
    with ThreadPoolExecutor(2 * len(framing.UNFINISHED)) as pool:
        yield {
            name: pool.submit(
                seconds_until_it_is_over,
                service.port,
                request.replace(KEY, caller.live.encode()),
                trickle=b"1" if name in trickled else b"",
                at_most_s=_OVER_WITHIN_S,
            )
            for name, request in (framing.UNFINISHED | trickled).items()
        }


def _named(cases: Sequence[BodyCase] | Sequence[RawCase]) -> list[object]:
    """Name each case once; a name that stands twice would hide a case."""
    names = [case.name for case in cases]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    return [pytest.param(case, id=case.name) for case in cases]


def _ask(service: Service, caller: Organization, request: bytes, *, then_close: bool = False) -> Answer:
    """Make one call; a slow one counts only if it is slow five times over: the machine may be busy elsewhere."""
    request = request.replace(KEY, caller.live.encode())
    for _ in range(5):
        answer = exchange(service.port, request, then_close=then_close)
        if answer.elapsed_s < _ANSWERED_WITHIN_S:
            break
    return answer


def _assert_documented(answer: Answer, statuses: frozenset[int], fields: frozenset[str]) -> None:
    """Check what holds for every answer: its status, its envelope, its headers, its time, and that it is one."""
    assert answer.status in statuses, answer.body[:500]
    document = json.loads(answer.body)
    assert list(document) == ["success", "data", "errors", "additional_data"]
    if answer.status < 400:
        assert document["success"] is True
        assert document["errors"] is None
        assert document["additional_data"]["version"]
    else:
        assert (document["success"], document["data"]) == (False, None)
        assert (document["additional_data"] is None) is (answer.status == 400)
        assert answer.status == 400 or list(document["additional_data"]) == ["code"]
        assert set(document["errors"]) == fields
        assert all(
            lines and all(isinstance(line, str) and line for line in lines) for lines in document["errors"].values()
        )
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store, private"
    assert answer.headers["Vary"] == "Accept, Authorization"
    assert answer.headers["Via"] == "1.1 points"
    assert len(answer.headers.get_all("X-Request-Id", [])) == 1
    assert "X-Evil" not in answer.headers
    assert not any(trace in answer.body for trace in (b"Traceback", b".py", b'File "', b"site-packages", b"psycopg"))
    assert answer.rest == b"", "a second answer came to one request"
    assert answer.elapsed_s < _ANSWERED_WITHIN_S


@pytest.mark.parametrize("target", [VERIFY, SEND], ids=["verify", "send"])
@pytest.mark.parametrize("case", _named([*json_forms.CASES, *numbers.CASES, *texts.CASES, *recipients.CASES]))
def test_a_bad_body_is_400_on_its_fields_and_writes_nothing(
    service: Service, caller: Organization, books: Books, case: BodyCase, target: bytes
) -> None:
    before = books()
    answer = _ask(service, caller, case.request(target))
    _assert_documented(answer, frozenset([400]), case.fields)
    assert books() == before


@pytest.mark.parametrize(
    "case", _named([*json_forms.GOOD_CASES, *numbers.GOOD_CASES, *texts.GOOD_CASES, *recipients.GOOD_CASES])
)
def test_a_strange_body_that_is_right_is_verified_and_writes_nothing(
    service: Service, caller: Organization, books: Books, case: BodyCase
) -> None:
    before = books()
    answer = _ask(service, caller, case.request(VERIFY))
    _assert_documented(answer, frozenset([200]), case.fields)
    assert json.loads(answer.body)["data"] == {"validated": True, "error": None}
    assert books() == before


@pytest.mark.parametrize("case", _named([*headers.CASES, *framing.CASES, *paths.CASES, *queries.CASES]))
def test_a_bad_request_gets_its_status_and_one_answer_and_writes_nothing(
    service: Service, caller: Organization, books: Books, case: RawCase
) -> None:
    before = books()
    answer = _ask(service, caller, case.request, then_close=case.then_close)
    _assert_documented(answer, case.statuses, case.fields)
    assert ("Allow" in answer.headers) == (answer.status == 405)
    assert (answer.headers["WWW-Authenticate"] == "Bearer") == (answer.status == 401)
    assert books() == before


def test_the_hundred_and_first_bad_entry_is_counted_and_not_listed(service: Service, caller: Organization) -> None:
    case = next(case for case in recipients.CASES if case.name == "150 bad entries")
    errors = json.loads(_ask(service, caller, case.request(VERIFY)).body)["errors"]
    assert errors["recipients"] == ["50 more entries are at fault."]


@pytest.mark.parametrize("target", [VERIFY, SEND, b"/nowhere"], ids=bytes.decode)
def test_a_head_is_answered_without_a_body(service: Service, caller: Organization, target: bytes) -> None:
    answer = _ask(service, caller, call("HEAD", target, framed=False, content_type=None))
    assert answer.status in (404, 405)
    assert (answer.body, answer.rest) == (b"", b"")


_READ = [
    b"/v1/organization",
    b"/v1/batches?limit=1",
    b"/v1/transactions",
    b"/v1/batches?limit=0",
    b"/v1/batches/999999999",
]
_READ += [b"/healthz", b"/readyz", b"/openapi.json", b"/docs", b"/docs/main.js", b"/nowhere"]


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"], ids=bytes.decode)
@pytest.mark.parametrize("target", _READ, ids=bytes.decode)
def test_what_can_be_got_has_a_head_with_the_same_headers_and_1_0_gets_no_chunks(
    service: Service, caller: Organization, target: bytes, version: bytes
) -> None:
    got, head = (
        _ask(service, caller, call(method, target, framed=False, content_type=None, version=version))
        for method in ("GET", "HEAD")
    )
    assert (head.status, head.body, head.rest, got.rest) == (got.status, b"", b"", b"")
    assert head.headers["Content-Length"] == got.headers["Content-Length"]
    for name in ("Content-Type", "Cache-Control", "Vary", "Via", "ETag", "Content-Security-Policy"):
        assert head.headers.get_all(name) == got.headers.get_all(name), name
    assert got.body
    if version == b"HTTP/1.0":
        assert "Transfer-Encoding" not in got.headers
        assert got.headers["Connection"] == head.headers["Connection"] == "close"
    if "Transfer-Encoding" not in got.headers and got.headers["Content-Length"] is None:
        assert got.headers["Connection"] == "close"  # Where its end is, only the end of the connection tells.


@pytest.mark.parametrize("target", [VERIFY, SEND], ids=bytes.decode)
def test_a_caller_of_http_1_0_gets_no_chunks(service: Service, caller: Organization, target: bytes) -> None:
    for body, statuses in ((GOOD, (200, 201)), (b"[]", (400,))):
        answer = _ask(service, caller, call("POST", target, body=body, version=b"HTTP/1.0"))
        assert answer.status in statuses
        assert "Transfer-Encoding" not in answer.headers
        assert json.loads(answer.body)["success"] is (answer.status < 400)


def test_a_strange_request_id_never_comes_back(service: Service, caller: Organization) -> None:
    for strange in (b"a" * 129, b"a, b", b"<b>", "é".encode(), b"\xe9", b'"a"', b"a;b", b"%0d%0a", b"", b"a\tb"):
        request = call("GET", b"/healthz", b"X-Request-Id: " + strange, framed=False)
        answer = exchange(service.port, request.replace(KEY, caller.live.encode()))
        assert answer.headers["X-Request-Id"].encode("latin-1") != strange
        assert answer.headers["X-Request-Id"].isalnum()


def test_an_unfinished_request_is_over_in_time(service: Service, unfinished: dict[str, Future[float]]) -> None:
    over_after_s = {name: future.result() for name, future in unfinished.items()}
    assert {name: seconds for name, seconds in over_after_s.items() if seconds >= _OVER_WITHIN_S} == {}


def test_no_log_line_repeats_a_key_an_address_or_a_body(service: Service, caller: Organization) -> None:
    # A line that must come: once it is there, so is every line before it.
    written = len(service.output)
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(b"%b %b\r\n\r\n" % (CANARY.encode(), caller.live.encode()))
        assert connection.recv(1)
    until(lambda: any("not_a_request" in line for line in service.output[written:]))
    output = "\n".join(service.output)
    for secret in (CANARY, caller.live[9:], caller.live[9:25], caller.development[8:], "Traceback"):
        assert secret not in output
