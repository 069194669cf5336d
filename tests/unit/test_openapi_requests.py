"""The body as `/openapi.json` describes it, beside the body as it is checked: what one takes, the other takes.

But for what is said in words only, so that clients can be generated: that an empty text or array counts as missing,
that both recipients fields are one too many even where one of them is at fault, and that one address in other letters
is the same.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.api.openapi.calls import CALLS
from app.api.openapi.description import document
from app.api.openapi.examples import BODIES, REVERSE_BODIES, WEBHOOK_BODIES
from app.api.requests.issue import FIELDS, FIELDS_OF_SEND, parse_issue_request, parse_reschedule
from app.errors import Faults, InvalidRequest
from app.settings import Settings, settings

_MISSING: st.SearchStrategy[Any] = st.sampled_from([None, "", []])
_SCALARS = _MISSING | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_ANYTHING = _SCALARS | st.lists(_SCALARS, max_size=3) | st.dictionaries(st.text(), _SCALARS, max_size=2)
_EMAILS = st.sampled_from(["a@example.com", "b@example.com", "c@example.com", "用户@例子.广告"])
_ITEM = st.fixed_dictionaries(
    {},
    optional={
        "email": _EMAILS | _ANYTHING,
        "amount": st.integers(1, 10**9) | st.sampled_from([0, 10**9 + 1, -1, None, "1", True]),
        "label": st.sampled_from([None, "x", "a" * 256, "a\0", 7]),
        "reference": st.sampled_from([None, "r", "Ü", "a b", "a" * 129, "a\n", "\u200b", 7]),
        "unknown": _ANYTHING,
    },
)
_BODIES = st.fixed_dictionaries(
    {},
    optional={
        "recipients": st.lists(_EMAILS, max_size=3) | st.lists(_EMAILS | _ANYTHING, max_size=3) | _MISSING | _ANYTHING,
        "recipient": _EMAILS | _MISSING | _ANYTHING,
        "amount": st.integers(1, 10**9) | st.sampled_from([0, 10**9 + 1, -1]) | _ANYTHING,
        "atomic": st.booleans() | _ANYTHING,
        "label": st.text(max_size=300) | st.sampled_from(["a" * 255, "a" * 256, "a\0", "\n"]) | _ANYTHING,
        "items": st.lists(_ITEM, max_size=3) | st.lists(_ANYTHING, max_size=2) | _MISSING | _ANYTHING,
        "metadata": st.dictionaries(st.text(max_size=50), st.text(max_size=3) | _SCALARS, max_size=2)
        | st.sampled_from([{str(number): "x" for number in range(21)}, {"a": "x" * 501}])
        | _ANYTHING,
        "expect": st.sampled_from([{}, {"recipient": 1}, {"amount": "1"}, {"amount": None}, [1], 1, None, "x"]),
        "unknown": _ANYTHING,
    },
)


def _validator(model: str = "IssueRequest") -> Draft202012Validator:
    return _validator_of(model, settings())


@cache  # For each of hundreds of bodies the whole description would be made anew.
def _validator_of(model: str, limits: Settings) -> Draft202012Validator:
    described = document(limits)
    return Draft202012Validator({"$ref": f"#/components/schemas/{model}", "components": described["components"]})


def _is_described_in_words(field: str, sentence: str) -> bool:
    """Tell whether a fault is about the inside of an address, two that are the same, or an amount of neither."""
    of_a_recipient = field.startswith(("recipient", "items."))
    in_words = ("must be an e-mail address", "is the same", "neither the item nor the body has one")
    return of_a_recipient and any(words in sentence for words in in_words)


@given(_BODIES)
@effort(max_examples=400, deadline=None)
def test_what_is_described_is_what_is_checked(body: dict[str, Any]) -> None:
    if isinstance(body.get("amount"), float):
        return  # JSON Schema counts 10.0 among the integers, and the service does not; the description says so.
    if any(body.get(name) in ("", []) for name in ("atomic", "metadata", "expect")) or body.get("label") == []:
        return
    if body.get("items") and isinstance(body.get("amount"), list):
        return  # Empty, it counts as missing.
    described = _validator().is_valid(body)
    faults = _faults(body)
    if any(", not both." in sentence for sentences in faults.values() for sentence in sentences):
        return
    if not faults:
        assert described, [error.message for error in _validator().iter_errors(body)]
    elif not all(_is_described_in_words(field, text) for field, texts in faults.items() for text in texts):
        assert not described, faults


def _faults(body: dict[str, Any], known: Sequence[str] = FIELDS) -> Faults:
    try:
        parse_issue_request(json.dumps(body).encode("utf-8", "surrogatepass"), settings(), known)
    except InvalidRequest as refusal:
        return refusal.faults
    return {}


_EXAMPLES = sorted(
    {(call["body"]["model"], name) for call in CALLS if "body" in call for name in call["body"]["examples"]}
)


@pytest.mark.parametrize(("model", "name"), _EXAMPLES)
def test_each_example_of_a_body_is_one(model: str, name: str) -> None:
    assert _validator(model).is_valid((BODIES | REVERSE_BODIES | WEBHOOK_BODIES)[name])


@pytest.mark.parametrize("name", [name for model, name in _EXAMPLES if model == "IssueRequest"])
def test_each_example_of_what_verify_takes_is_taken(name: str) -> None:
    assert parse_issue_request(json.dumps(BODIES[name]).encode(), settings()).required > 0


_MOMENTS = st.sampled_from(["2026-02-01T09:00:00Z", "2026-02-01t09:00+05:30", "2026-02-01 09:00Z", "2026-02-01", "9"])


@given(_MOMENTS | _ANYTHING)
@effort(max_examples=100, deadline=None)
def test_a_moment_is_described_as_it_is_checked_and_verify_takes_none(moment: Any) -> None:
    if moment in ("", []):
        return
    body = {"recipient": "a@example.com", "amount": 1, "send_at": moment}
    described = _validator("SendRequest").is_valid(body)
    assert described is not bool(_faults(body, FIELDS_OF_SEND))
    assert list(_faults(body)) == ["send_at"]
    assert not _validator().is_valid(body)


_DAYS = st.integers(-5, 4_000) | st.sampled_from([1, 3_650, 3_651, 2**70])


@given(_DAYS | _ANYTHING)
@effort(max_examples=100, deadline=None)
def test_days_are_described_as_they_are_checked_and_verify_takes_none(days: Any) -> None:
    if days in ("", []) or isinstance(days, float):
        return
    body = {"recipient": "a@example.com", "amount": 1, "hold_days": days}
    described = _validator("SendRequest").is_valid(body)
    assert described is not bool(_faults(body, FIELDS_OF_SEND))
    assert list(_faults(body)) == ["hold_days"]
    assert not _validator().is_valid(body)


def test_an_example_of_a_moment_is_read_as_it_is_meant() -> None:
    taken = parse_issue_request(json.dumps(BODIES["later"]).encode(), settings(), FIELDS_OF_SEND)
    assert taken.send_at == datetime(2026, 2, 1, 9, tzinfo=UTC)
    moved = parse_reschedule(b'{"send_at": "2026-02-01T14:30:00.1234569+05:30"}')
    assert moved == datetime(2026, 2, 1, 9, microsecond=123456, tzinfo=UTC)


def test_both_recipients_fields_are_described_as_one_too_many() -> None:
    both = {"recipients": ["a@example.com"], "recipient": "b@example.com", "amount": 1}
    assert not _validator().is_valid(both)
    assert _validator().is_valid(both | {"recipient": None})
    assert _validator().is_valid(both | {"recipients": []})


def test_a_generator_of_clients_meets_nothing_that_it_cannot_name() -> None:
    """Null alone, enums of values of several types and forms that are no schema of their own: several break at each."""
    for name, schema in document(settings())["components"]["schemas"].items():
        assert all("$ref" in form for form in schema.get("oneOf", ())), name
        for field, described in schema.get("properties", {}).items():
            assert described.get("type") != "null", (name, field)
            assert len({type(value) for value in described.get("enum", ())}) <= 1, (name, field)
