"""Bad input, over HTTP: each case gets its documented status and envelope, and writes nothing."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import text

from tests.e2e.bad_input import framing, headers, json_forms, paths, queries, values
from tests.e2e.bad_input.cases import ADDRESS, CANARY, KEY, Case, body, call
from tests.e2e.bad_input.costly import COSTLY
from tests.e2e.raw_http import Answer, exchange
from tests.service.inside import Organization, Service

_CALLERS = 8
_ANSWERED_WITHIN_S = 1.0

Books = Callable[[], tuple[int, ...]]

_BALANCE = 1_000_000_000_000


@pytest.fixture(scope="module")
def caller(service: Service) -> Organization:
    """Make an organization that could pay for every case, if one were let through."""
    return service.organization(_BALANCE, sandbox_balance=_BALANCE)


@pytest.fixture(scope="module")
def books(service: Service, caller: Organization) -> Iterator[Books]:
    """Read what a request could have written: rows and points of the caller, and users; others call meanwhile."""
    engine = service.new_engine().execution_options(isolation_level="AUTOCOMMIT")
    of = {"id": caller.id, "canary": f"%{CANARY}%"}
    with engine.connect() as connection:
        yield lambda: tuple(connection.execute(_BOOKS, of).one())
    engine.dispose()


_BOOKS = text("""
    SELECT (SELECT max(id) FROM batches WHERE organization_id = :id),
           (SELECT max(batch_id) FROM transactions WHERE organization_id = :id),
           (SELECT max(id) FROM refills WHERE organization_id = :id),
           (SELECT max(id) FROM api_keys WHERE organization_id = :id),
           (SELECT count(*) FROM users WHERE email LIKE :canary),
           (SELECT count(*) FROM organizations WHERE name LIKE :canary),
           balance, sandbox_balance
    FROM organizations WHERE id = :id
""")


def _ask(service: Service, caller: Organization, request: bytes, *, then_close: bool = False) -> Answer:
    return exchange(service.port, request.replace(KEY, caller.live.encode()), then_close=then_close)


def _assert_documented(answer: Answer, statuses: frozenset[int], fields: frozenset[str]) -> None:
    """Check what holds for every answer: its status, its envelope, its headers, and that it is one."""
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
    assert answer.headers["Date"].endswith(" GMT")
    assert not any(character.isdigit() for character in answer.headers["Server"]), "it gives no version"
    assert (answer.headers["Transfer-Encoding"] == "chunked") is (answer.status == 400 and answer.version == 11)
    assert ("Allow" in answer.headers) == (answer.status == 405)
    assert (answer.headers["WWW-Authenticate"] == "Bearer") == (answer.status == 401)
    assert len(answer.headers.get_all("X-Request-Id", [])) == 1
    assert "X-Evil" not in answer.headers
    assert not any(trace in answer.body for trace in (b"Traceback", b".py", b'File "', b"site-packages", b"psycopg"))
    assert answer.rest == b"", "a second answer came to one request"


def _complaint(service: Service, caller: Organization, case: Case) -> str | None:
    """Return what is wrong with the answer of a case, if anything is."""
    try:
        answer = _ask(service, caller, case.request, then_close=case.then_close)
        _assert_documented(answer, case.statuses, case.fields)
    except (AssertionError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _complaints(service: Service, caller: Organization, cases: Sequence[Case]) -> dict[str, str]:
    names = [case.name for case in cases]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    with ThreadPoolExecutor(_CALLERS) as pool:
        found = pool.map(partial(_complaint, service, caller), cases)
        return {name: complaint for name, complaint in zip(names, found, strict=True) if complaint}


_TABLES = {
    module.__name__.rpartition(".")[2]: module.CASES for module in (framing, headers, json_forms, paths, queries)
}
_TABLES["values"] = values.CASES


@pytest.mark.parametrize("table", _TABLES)
def test_bad_input_gets_its_status_and_one_answer_and_writes_nothing(
    service: Service, caller: Organization, books: Books, table: str
) -> None:
    before = books()
    assert _complaints(service, caller, _TABLES[table]) == {}
    assert books() == before


@pytest.mark.alone
@pytest.mark.parametrize("name", COSTLY)
def test_what_is_dear_to_take_apart_is_answered_within_a_second(
    service: Service, caller: Organization, name: str
) -> None:
    """A slow answer counts only if it is slow five times over: the machine may be busy elsewhere.

    Where memory is slow, it has three times as long as Python's own parser has for as many keys.
    """
    content, fields = COSTLY[name]
    case = body(name, content(), *fields)
    for _ in range(5):
        answer = _ask(service, caller, case.request)
        _assert_documented(answer, case.statuses, case.fields)
        if answer.elapsed_s < _ANSWERED_WITHIN_S:
            break
    else:
        assert answer.elapsed_s < 3 * _parsed_s(COSTLY["a million keys"][0]())


def _parsed_s(document: str) -> float:
    began = time.perf_counter()
    json.loads(document)
    return time.perf_counter() - began


_READ = [b"/v1/organization", b"/v1/batches?limit=1", b"/v1/batches?limit=0", b"/v1/batches/999999999", b"/readyz"]
_READ += [b"/openapi.json", b"/docs", b"/docs/main.js", b"/nowhere"]


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


@pytest.mark.parametrize("name", ['Ac"me', "Ac\\me", "アクメ", "}{", '","balance":0,"'])
def test_any_name_of_an_organization_comes_through_whole(service: Service, name: str) -> None:
    key = service.organization(10, name=name).live
    [sent] = service.send(key, {"recipient": ADDRESS, "amount": 1}).json()["data"]["transactions"]
    assert (sent["organization"]["name"], sent["organization"]["balance"]) == (name, 9)
