"""What is no JSON object, of another type, too large or broken off: refused, each with its status, and not issued."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.calls import Organization, nothing_changes, refusal, success
from tests.e2e.raw_http import exchange
from tests.ports import HOST
from tests.service.up import Service

_PATHS = ("/v1/points/verify", "/v1/points/send")
_JSON = {"Content-Type": "application/json"}
_FIELDS = b'"recipient": "ann@example.com", "amount": 1'
_GOOD = b"{%b}" % _FIELDS
_BODY_BYTES_MAX = 8_388_608


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_issued(acme: Organization) -> Iterator[None]:
    with nothing_changes(acme.live):
        yield


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
