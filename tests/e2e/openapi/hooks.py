"""What schemathesis is told that a schema cannot say: the rules of meaning, by the field or parameter that has each."""

import itertools
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import schemathesis
from schemathesis import Case, GenerationMode, HookContext

from app.batches.verify import WORDS
from app.values.timestamps import TIMESTAMP_FORM

# Addresses that nobody has yet.
_ADDRESSES = (f"tried-{number}@example.com" for number in itertools.count())
# The clock of the sandbox goes forwards with each call, but so little that no time of another call is past by it.
_CLOCK_AHEAD_S = itertools.count(1)
_PREFERENCE = re.compile("(respond-async|wait=[0-9]{1,9})?")


def _ahead(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


# Of a field: the rule, and a value that keeps it.
OF_FIELDS: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "send_at": ("It lies 1 minute to 366 days ahead.", lambda: _ahead(1)),
    "held_until": ("It is later with each call, and later than that of any send.", lambda: _ahead(3_649)),
    "expires_at": ("It is a day or a moment that exists, and later than now.", lambda: "2100-01-01"),
    "url": ("It is one that the operator allows; nobody listens there.", lambda: "http://127.0.0.1:1024/"),
    "types": ("Each names a type that there is.", lambda: ["*"]),
    "from_sequence": ("The webhook has passed it.", lambda: 1),
    "role": ("Nothing follows the word, also no line end.", lambda: "viewer"),
    "email": ("It is an address, and nobody else's.", lambda: next(_ADDRESSES)),
    "name": ("Its characters can be seen.", lambda: "Name"),
    "batch": ("It exists: else 404, which of transactions is a 400.", lambda: 1),
}
# Of a parameter: the rule. It is left out of calls that are meant to be good.
OF_PARAMETERS: Mapping[str, str] = {
    "cursor": "It is the answer of an earlier call.",
    "after": "It is not beyond the end of the log.",
    "types": "Each names a type that there is.",
    "created_from": "Its day exists, its offset is one that zones have, and it is not after the other bound.",
    "created_to": "The same.",
    "wait": "It takes as long.",
}
# Of a whole body, in `_mend_body`: an integer is not written 10.0; `expect` agrees with the rest; no recipient stands
# twice; an item has an amount, its own or that of the body. Days of a statement are in order, and not too many.


@schemathesis.hook
def before_call(_context: HookContext, case: Case[Any], _request: dict[str, Any]) -> None:
    """Mend calls that are meant to be good, where the schema lets through what the service must refuse."""
    # It brings answers that are faults elsewhere, or none at all. A call that lacks its key would get it by a change.
    lacks = None if case.meta is None else getattr(case.meta.phase.data, "parameter", None)
    if case.headers and case.headers.get("Points-Rehearse") in WORDS and lacks != "Authorization":
        del case.headers["Points-Rehearse"]
    # A value of an answer may go into a header of the next call, as the number that it is.
    case.headers.update({name: str(value) for name, value in case.headers.items() if isinstance(value, int)})
    if isinstance(case.body, dict):
        _mend_clock(case.body)
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    if case.headers and not _PREFERENCE.fullmatch(case.headers.get("Prefer", "")):
        del case.headers["Prefer"]
    if isinstance(case.body, dict):
        _mend_body(case.body)
    if case.query:
        for name in OF_PARAMETERS:
            case.query.pop(name, None)
        if "from" in case.query:
            case.query |= {"from": "2026-01-01", "to": "2026-01-31"}


def _mend_clock(body: dict[str, Any]) -> None:
    """Replace a time for the clock, also where something else is meant to be bad: it might be accepted all the same."""
    if isinstance(now := body.get("now"), str) and re.search(TIMESTAMP_FORM, now):
        with suppress(ValueError):
            datetime.fromisoformat(now)
            body["now"] = (datetime.now(UTC) + timedelta(seconds=next(_CLOCK_AHEAD_S))).isoformat()


def _mend_body(body: dict[str, Any]) -> None:
    for part in (body, *(body.get("items") or ())):
        part |= {name: int(value) for name, value in part.items() if isinstance(value, float) and value.is_integer()}
    if body.pop("transactions", None):
        body["batch"] = 1
    body |= {name: value() for name, (_, value) in OF_FIELDS.items() if body.get(name) is not None}
    body.pop("expect", None)
    for place, item in enumerate(body.get("items") or ()):
        item["email"] = f"{place}@example.com"
        item["amount"] = item.get("amount") or body.get("amount") or 1
        item.pop("reference", None)
