"""What schemathesis is told that a schema cannot say."""

import itertools
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import schemathesis
from schemathesis import Case, GenerationMode, HookContext

from app.batches.verify import WORDS
from app.values.timestamps import TIMESTAMP_FORM

# `held_until` is later with each call, and later than that of any send.
_DAYS_AHEAD = {"send_at": 1, "held_until": 3_649}
# Whole numbers, which a schema takes as 10.0 too.
_INTEGERS = (
    "amount",
    "hold_days",
    "batch",
    "balance",
    "sandbox_balance",
    "held_days",
    "low_balance",
    "approval_above",
    "batch_limit",
    "daily_limit",
)
# Addresses that nobody has yet.
_ADDRESSES = (f"tried-{number}@example.com" for number in itertools.count())
# The clock of the sandbox goes forwards with each call, but so little that no time of another call is past by it.
_CLOCK_AHEAD_S = itertools.count(1)


@schemathesis.hook
def before_call(_context: HookContext, case: Case[Any], _request: dict[str, Any]) -> None:
    """Mend calls that are meant to be good, where the schema lets through what the service must refuse.

    And one that is meant to be bad: an empty text counts as missing, which the description says in words.
    """
    # It brings answers that are faults elsewhere, or none at all. A call that lacks its key would get it by a change.
    lacks = None if case.meta is None else getattr(case.meta.phase.data, "parameter", None)
    if case.headers and case.headers.get("Points-Rehearse") in WORDS and lacks != "Authorization":
        del case.headers["Points-Rehearse"]
    if isinstance(case.body, dict):
        _mend_clock(case.body)
        # An empty text counts as missing.
        case.body |= {name: " " for name in ("name", "reference", "external_id") if case.body.get(name) == ""}
    items = case.body.get("items") if isinstance(case.body, dict) else None
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("reference") == "":
            item["reference"] = " "
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    if isinstance(case.body, dict):
        _mend_body(case.body)
    # A cursor is the answer of an earlier call, and not any text of its form; so is the end of a log. A text in the
    # form of `types` may name none, and an offset may be one that no zone has. And to wait takes long.
    for name in ("cursor", "after", "types", "created_from", "created_to", "wait"):
        if case.query:
            case.query.pop(name, None)
    if case.query and "from" in case.query:  # Days of the calendar, in order, and not more than there may be.
        case.query |= {"from": "2026-01-01", "to": "2026-01-31"}


def _mend_clock(body: dict[str, Any]) -> None:
    """Replace a time for the clock, also where something else is meant to be bad: it might be accepted all the same."""
    if isinstance(now := body.get("now"), str) and re.search(TIMESTAMP_FORM, now):
        with suppress(ValueError):
            datetime.fromisoformat(now)
            body["now"] = (datetime.now(UTC) + timedelta(seconds=next(_CLOCK_AHEAD_S))).isoformat()


def _mend_body(body: dict[str, Any]) -> None:
    # JSON Schema counts `10.0` among the integers; the contract does not.
    for part in (body, *(body.get("items") or ())):
        for name, value in part.items():
            if name in _INTEGERS and isinstance(value, float) and value.is_integer():
                part[name] = int(value)
    for name, days_ahead in _DAYS_AHEAD.items():  # Any moment of the right form, however far it lies.
        if body.get(name):
            body[name] = (datetime.now(UTC) + timedelta(days=days_ahead)).isoformat()
    # Any URL, but the service calls none that the operator does not allow, and nobody listens there. Texts of the right
    # form that name no type. An event that has not been passed.
    possible = {"url": "http://127.0.0.1:1024/", "types": ["*"], "from_sequence": 1, "role": "viewer"}
    # An address of the right form that is none, a day that no year has, a name with characters that cannot be seen.
    possible |= {"email": next(_ADDRESSES), "expires_at": "2100-01-01"}
    if isinstance(name := body.get("name"), str) and not name.isprintable():
        body["name"] = "Name"
    body |= {name: value for name, value in possible.items() if name in body}
    body.pop("expect", None)  # What agrees with the rest of the body.
    for place, item in enumerate(body.get("items") or ()):
        item["email"] = f"{place}@example.com"  # Each another.
        item["amount"] = item.get("amount") or body.get("amount") or 1
        item.pop("reference", None)
    if body.pop("transactions", None):
        body["batch"] = 1  # Which ids there are, no schema can say; of a batch that is not there, 404 can.
