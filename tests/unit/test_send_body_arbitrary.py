"""The body of verify and send: whatever the bytes are, they are read or refused, and nothing else happens."""

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from app.errors import InvalidRequest
from app.settings import Settings
from tests.unit.bodies import read

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_JSON = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=15)
_EMAILS = st.sampled_from(["a@example.com", "A@example.com ", "b@example.com", "用户@例子.广告"])
_ENTRIES = st.lists(_EMAILS, max_size=3) | st.lists(_JSON | _EMAILS, max_size=130)
_BODIES = st.fixed_dictionaries(
    {},
    optional={
        "recipients": _ENTRIES | _JSON,
        "recipient": _EMAILS | _JSON,
        "amount": st.integers(1, 10**9) | st.integers(-(2**70), 2**70) | _JSON,
        "atomic": st.booleans() | _JSON,
        "label": st.text(st.characters(), max_size=300) | _JSON,
    },
)


def reads_or_refuses(body: bytes) -> None:
    """Read a body; whatever it is, it is read or refused as the contract says, and nothing else happens."""
    try:
        request = read(body)
    except InvalidRequest as refusal:
        faults = refusal.faults
        assert faults
        assert all(sentences and all(sentences) for sentences in faults.values())
        assert sum(field.startswith("recipients.") for field in faults) <= 100
        orjson.dumps(faults)  # It can be sent: no lone surrogate of the caller's is in it.
    else:
        assert len(request.emails) == len(request.email_keys) == len(set(request.email_keys)) >= 1
        assert type(request.amount) is int
        assert 1 <= request.amount <= Settings.model_fields["amount_max"].default
        assert type(request.atomic) is bool
        assert request.label is None or 1 <= len(request.label) <= 255
        assert len(request.meaning()) == 32


@given(st.binary() | st.text(st.characters()).map(lambda text: text.encode("utf-8", "surrogatepass")))
@effort(deadline=None)
def test_arbitrary_bytes_are_read_or_refused(body: bytes) -> None:
    reads_or_refuses(body)


@given(_JSON)
@effort(deadline=None)
def test_arbitrary_json_is_read_or_refused(document: Any) -> None:
    reads_or_refuses(json.dumps(document).encode())


@given(_BODIES, st.booleans())
@effort(max_examples=150, deadline=None)
def test_arbitrary_fields_are_read_or_refused(body: dict[str, Any], as_utf_8: bool) -> None:
    reads_or_refuses(json.dumps(body, ensure_ascii=not as_utf_8).encode("utf-8", "surrogatepass"))
