"""What is no JSON object, of another type, too large or broken off: refused, each with its status, and not issued."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.calls import Organization, nothing_changes, refusal, success
from tests.contract.service import Service
from tests.e2e.raw_http import exchange
from tests.ports import HOST

_PATHS = ("/v1/points/verify", "/v1/points/send")
_JSON = {"Content-Type": "application/json"}
_FIELDS = b'"recipient": "ann@example.com", "amount": 1'
_GOOD = b"{%b}" % _FIELDS
_BODY_BYTES_MAX = 8_388_608

_NO_JSON = {
    "nothing": b"",
    "blanks": b" \r\n",
    "cut off": _GOOD[:-1],
    "two objects": _GOOD * 2,
    "a comma too many": b"{%b,}" % _FIELDS,
    "single quotes": _GOOD.replace(b'"', b"'"),
    "a comment": b"{/* */ %b}" % _FIELDS,
    "a form": b"recipient=ann@example.com&amount=1",
    "null": b"null",
    "true": b"true",
    "a number": b"1",
    "a string": b'"recipient"',
    "an array": b"[%b]" % _GOOD,
    "Latin-1": b'{"label": "\xe9", %b}' % _FIELDS,
    "UTF-16": _GOOD.decode().encode("utf-16"),
    "a cut character": b'{"label": "\xe2\x82", %b}' % _FIELDS,
    "a surrogate alone": b'{"label": "\\ud83d", %b}' % _FIELDS,
    "a raw NUL": b'{"label": "\0", %b}' % _FIELDS,
    "an unknown escape": b'{"label": "\\x41", %b}' % _FIELDS,
    "arrays without end": b"[" * 100_000,
    "objects without end": b'{"a":' * 100_000,
    "100,000 digits": b"9" * 100_000,
}


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_issued(acme: Organization) -> Iterator[None]:
    with nothing_changes(acme.live):
        yield


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize("body", _NO_JSON.values(), ids=_NO_JSON)
def test_what_is_no_json_object_in_utf_8_is_a_fault_of_the_body(acme: Organization, path: str, body: bytes) -> None:
    refusal(acme.live.call("POST", path, content=body, headers=_JSON), 400, "body")


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"], ids=["UTF-8", "UTF-16LE", "UTF-16BE"])
def test_a_body_that_begins_with_a_byte_order_mark_is_told_so(acme: Organization, path: str, mark: bytes) -> None:
    answer = acme.live.call("POST", path, content=mark + _GOOD, headers=_JSON)
    assert "byte order mark" in refusal(answer, 400, "body")["body"][0]


_OTHER_TYPES = [
    "",
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/problem+json",
    "multipart/form-data",
]


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize(
    "headers",
    [{}, {**_JSON, "Content-Encoding": "gzip"}, *({"Content-Type": one} for one in _OTHER_TYPES)],
    ids=lambda headers: str(headers.get("Content-Type")),
)
def test_a_body_of_another_type_is_415(acme: Organization, path: str, headers: dict[str, str]) -> None:
    refusal(acme.live.call("POST", path, content=_GOOD, headers=headers), 415, "content_type")


@pytest.mark.parametrize("charset", ["; charset=utf-8", ";charset=UTF-8", '; charset="utf-8"'])
def test_a_charset_beside_the_type_is_fine(acme: Organization, charset: str) -> None:
    headers = {"Content-Type": f"application/json{charset}"}
    success(acme.live.call("POST", "/v1/points/verify", content=_GOOD, headers=headers))


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_at_the_limit_is_read_and_one_byte_more_is_413(acme: Organization, is_chunked: bool) -> None:
    for path, length in zip(_PATHS, (_BODY_BYTES_MAX, _BODY_BYTES_MAX + 1), strict=True):
        body = _GOOD.ljust(length)
        content: Any = iter([body[:1_000_000], body[1_000_000:]]) if is_chunked else body
        answer = acme.live.call("POST", path, content=content, headers=_JSON)
        if length > _BODY_BYTES_MAX:
            refusal(answer, 413, "body")
        else:
            success(answer)


def test_a_body_that_breaks_off_issues_nothing(service: Service, acme: Organization) -> None:
    head = f"POST /v1/points/send HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {acme.live.text}\r\n"
    head += "Content-Type: application/json\r\n"
    for framed in (
        b"Content-Length: 1000\r\n\r\n" + _GOOD,
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(_GOOD), _GOOD),
    ):
        answer = exchange(service.port, head.encode() + framed, then_close=True)
        assert answer.status == 400
        assert b'"errors":{"request":[' in answer.body
