"""Each field as `/openapi.json` describes it, and as it is read: what one takes, the other takes.

But for what is said in words only, so that clients can be generated: that an empty text or array counts as missing,
that 10.0 is no integer, what is an address, and that one address in other letters is the same.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from app.api.openapi.description import document
from app.api.views import CALLS
from app.batches.approval import REJECTION, read_rejection
from app.batches.fields import ITEM, RESCHEDULE, SEND, VERIFY
from app.batches.request import read_issue_request, read_reschedule
from app.errors import Faults, InvalidRequest
from app.fields.field import Table
from app.ledger.registering import CHANGED_USER, NEW_USER, NEW_USERS, read_changes, read_new_user, read_new_users
from app.ledger.returns import EXTEND, HELD_UNTIL
from app.ledger.sandbox import CLOCK, NOW, read_user
from app.ledger.sandbox import NEW_USER as NEW_SANDBOX_USER
from app.members.links import NEW_MEMBER, read_new_member
from app.platform.requests import (
    CHANGEABLE,
    CHANGED_ORGANIZATION,
    NEW_KEY,
    NEW_ORGANIZATION,
    NEW_REFILL,
    read_new_key,
    read_new_organization,
    read_new_refill,
)
from app.reversals.request import REVERSE, ReverseReading
from app.settings import Settings, settings
from app.webhooks.actions import REPLAY
from app.webhooks.webhook import webhooks

_SCALARS: st.SearchStrategy[Any] = st.sampled_from([None, "", []]) | st.booleans() | st.integers() | st.text()
_ANYTHING = _SCALARS | st.lists(_SCALARS, max_size=3) | st.dictionaries(st.text(), _SCALARS, max_size=2)
_EMAILS = ["a@example.com", "b@example.com", "用户@例子.广告"]
_EDGES: list[Any] = [
    *(True, -1, 0, 1, 3_650, 3_651, 10**9, 10**9 + 1, 2**63 - 1, 2**70, 1.5),
    *("a" * 128, "a" * 129, "a" * 255, "a" * 256, "a\0", "\n", "a b", "Ü", "\u200b", *_EMAILS),
    *("2026-02-01T09:00:00Z", "2026-02-01t09:00+05:30", "2026-02-01 09:00Z", "2026-02-01"),
    *(_EMAILS, [*_EMAILS, _EMAILS[0]], [1, 2], [2, 2], [0], ["*"], ["batch.*", "ping"], ["batch.*"] * 2, ["batch"]),
    *("", [], {}, "2026-02-01T09:00-12:15", "2026-02-01T09:00+14:00", "2026-02-01T09:00+00:01", ["*.issued"], ["b*"]),
    *({"a": "x"}, {"a" * 40: "x" * 500}, {"a" * 41: "x"}, {"": "x"}, {"a": "x" * 501}, {"a\0": "x"}, {"a": "x\0"}),
    *({str(number): "x" for number in range(count)} for count in (20, 21)),
    *({"recipients": 1}, {"amount": "1"}, {"amount": None}, {"recipient": 1}),
    *([{"email": _EMAILS[0]}, {"email": _EMAILS[1], "amount": 7}], [{"email": _EMAILS[0], "amout": 7}], [{}]),
]

Read = Callable[[Mapping[str, Any], Settings], object]
_ONE: dict[str, Any] = {"recipient": "c@example.com", "amount": 1}
_OF_ITEM: Read = lambda item, limits: read_issue_request({"items": [item]}, limits)  # noqa: E731
# Each table, how it is read, and a body that is right.
_BODIES: list[tuple[Table, Read, dict[str, Any]]] = [
    (VERIFY, read_issue_request, _ONE),
    (SEND, partial(read_issue_request, known=SEND), _ONE),
    (ITEM, _OF_ITEM, {"email": "c@example.com", "amount": 1}),
    (RESCHEDULE, read_reschedule, {}),
    (REJECTION, read_rejection, {}),
    (EXTEND, HELD_UNTIL.read_alone, {}),
    (REVERSE, lambda fields, limits: ReverseReading(fields, limits).request(), {"batch": 1, "reason": "x"}),
    (webhooks.changed, webhooks.changed.read, {"description": "x"}),
    (REPLAY, REPLAY.read, {}),
    (CLOCK, NOW.read_alone, {}),
    (NEW_SANDBOX_USER, read_user, {"email": "c@example.com", "first_name": "x"}),
    (NEW_USER, read_new_user, {"email": "c@example.com", "first_name": "x"}),
    (NEW_USERS, read_new_users, {}),
    (CHANGED_USER, read_changes, {"last_name": "x"}),
    (NEW_ORGANIZATION, read_new_organization, {"name": "x"}),
    (CHANGED_ORGANIZATION, CHANGEABLE.read_sent, {"held_days": 1}),
    (NEW_REFILL, read_new_refill, {"amount": 1}),
    (NEW_KEY, read_new_key, {}),
    (NEW_MEMBER, read_new_member, {"email": "c@example.com", "first_name": "x", "role": "viewer"}),
]
_CHOICES = ({"recipient", "recipients", "items"}, {"batch", "transactions"})
_IN_WORDS: tuple[str, ...] = ("must be an e-mail address", "is the same", " are expected, but ")
_IN_WORDS += ("neither the item nor the body has one", "There is no type of this name", "whole quarters of an hour")
_IN_WORDS += ("visible characters and blanks only", "must be later than now")


@cache  # For each of hundreds of bodies the whole description would be made anew.
def _validator(model: str, limits: Settings) -> Draft202012Validator:
    described = document(limits)
    return Draft202012Validator({"$ref": f"#/components/schemas/{model}", "components": described["components"]})


def _faults(read: Read, body: dict[str, Any]) -> Faults:
    try:
        read(body, settings())
    except InvalidRequest as refusal:
        return refusal.faults
    return {}


def _agree(table: Table, name: str, read: Read, good: dict[str, Any], value: Any) -> None:
    row = next((row for row in table.rows if row.name == name), None)
    if value in ("", []) and row is not None and row.empty_is_missing:
        return
    others = next((names for names in _CHOICES if name in names), set())
    body = {other: right for other, right in good.items() if other not in others} | {name: value}
    faults = [text for texts in _faults(read, body).values() for text in texts]
    if not faults:
        errors = _validator(table.schema_name, settings()).iter_errors(body)
        assert [error.message for error in errors] == []
    elif not all(any(words in text for words in _IN_WORDS) for text in faults):
        assert not _validator(table.schema_name, settings()).is_valid(body), (body, faults)


_FIELDS = [
    pytest.param(table, name, read, good, id=f"{table.schema_name}-{name}")
    for table, read, good in _BODIES
    for name in (*table.names, "unknown")
    if name != "url"  # It is resolved.
]


@pytest.mark.parametrize(("table", "name", "read", "good"), _FIELDS)
def test_a_field_is_read_as_it_is_described(table: Table, name: str, read: Read, good: dict[str, Any]) -> None:
    for value in _EDGES:
        _agree(table, name, read, good, value)


@given(st.sampled_from(_FIELDS), _ANYTHING)
@effort(max_examples=400, deadline=None)
def test_whatever_is_sent_is_read_as_it_is_described(field: Any, value: Any) -> None:
    table, name, read, good = field.values
    _agree(table, name, read, good, value)


_EXAMPLES = [
    pytest.param(call.body.schema_name, example, id=f"{call.name}-{name}")
    for call in CALLS
    if call.body is not None
    for name, example in call.sent.items()
]


@pytest.mark.parametrize(("model", "example"), _EXAMPLES)
def test_each_example_of_a_body_is_one(model: str, example: dict[str, Any]) -> None:
    assert _validator(model, settings()).is_valid(example)
    for table, read, _ in _BODIES:
        assert table.schema_name != model or _faults(read, example) == {}


def test_both_recipients_fields_are_described_as_one_too_many() -> None:
    described = _validator("IssueRequest", settings())
    assert not described.is_valid(_ONE | {"recipients": ["a@example.com"]})
    assert described.is_valid(_ONE | {"recipients": []})
    assert not described.is_valid({"amount": 1})


def test_a_generator_of_clients_meets_nothing_that_it_cannot_name() -> None:
    """Null alone, enums of values of several types and forms that are no schema of their own: several break at each."""
    for name, schema in document(settings())["components"]["schemas"].items():
        assert all("$ref" in form for form in schema.get("oneOf", ())), name
        for field, described in schema.get("properties", {}).items():
            assert described.get("type") != "null", (name, field)
            assert len({type(value) for value in described.get("enum", ())}) <= 1, (name, field)
