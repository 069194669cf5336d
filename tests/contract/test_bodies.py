"""The body of verify and send: every fault in one 400, each on its field, and nothing is changed."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.calls import Key, Organization, address, addresses, nothing_changes, refusal, success

_ANN = '"ann@example.com"'
_JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_issued(acme: Organization) -> Iterator[None]:
    """Whatever is refused below leaves no batch and costs no point."""
    with nothing_changes(acme.live):
        yield


def _refused(key: Key, body: str | dict[str, Any], *fields: str) -> dict[str, list[str]]:
    """Require that verify and send refuse a body alike, and return the sentences by field."""
    content: dict[str, Any] = {"content": body, "headers": _JSON} if isinstance(body, str) else {"json": body}
    verified = key.call("POST", "/v1/points/verify", **content)
    sent = key.call("POST", "/v1/points/send", **content)
    assert refusal(verified, 400, *fields) == refusal(sent, 400, *fields)
    return refusal(sent, 400, *fields)


@pytest.mark.parametrize("missing", ["null", '""', "[]"])
def test_an_optional_field_that_is_null_or_empty_counts_as_missing(acme: Organization, missing: str) -> None:
    body = f'{{"recipient": {_ANN}, "amount": 1, "atomic": {missing}, "label": {missing}, "recipients": {missing}}}'
    success(acme.live.call("POST", "/v1/points/verify", content=body, headers=_JSON))


@pytest.mark.parametrize("name", ["send_at", "hold_days", "expect", "metadata"])
def test_an_empty_field_that_would_change_what_is_paid_and_when_is_a_fault(acme: Organization, name: str) -> None:
    empties: tuple[Any, ...] = ("", [], {})
    for empty in empties:
        refusal(acme.live.send({"recipient": address(), "amount": 1, name: empty}), 400, name)


def test_either_recipient_or_recipients_is_sent_and_only_what_is_missing_is_named(acme: Organization) -> None:
    both = {"recipient": address(), "recipients": addresses(1), "amount": 1}
    _refused(acme.live, both, "recipient", "recipients")
    _refused(acme.live, {"recipient": address()}, "amount")
    _refused(acme.live, {"amount": 1}, "recipient", "recipients")


@pytest.mark.parametrize(("name", "meant"), [("atomc", "atomic"), ("recipents", "recipients"), ("Label", "label")])
def test_a_misspelt_field_is_a_fault_that_names_the_nearest(acme: Organization, name: str, meant: str) -> None:
    for value in (True, None):
        errors = _refused(acme.live, {"recipient": address(), "amount": 1, name: value}, name)
        assert f"did you mean {meant}?" in errors[name][0]
    _refused(acme.live, {name: 1}, name, "amount", "recipient", "recipients")


def test_a_body_goes_with_no_query(acme: Organization) -> None:
    body = {"recipient": address(), "amount": 1}
    for path in ("/v1/points/verify?atomic=true", "/v1/points/send?atomic=true"):
        refusal(acme.live.call("POST", path, json=body), 400, "atomic")


def test_the_same_address_twice_is_a_fault_of_the_later_place_that_names_the_earlier(acme: Organization) -> None:
    once = address()
    body = {"recipients": [address(), once, f" {once.upper()} ", once], "amount": 1}
    errors = _refused(acme.live, body, "recipients.2", "recipients.3")
    assert all("recipients.1" in lines[0] for lines in errors.values())


_PATHS = ("/v1/points/verify", "/v1/points/send")
_FIELDS = b'"recipient": "ann@example.com", "amount": 1'
_GOOD = b"{%b}" % _FIELDS
_BODY_BYTES_MAX = 8_388_608


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
