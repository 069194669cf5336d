"""The queries of `FakePoints`' lists: parameters, their faults, and pages."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from points_client.testing.fields import INT64_MAX, Faults, NotInFake, key_of, unknown

_OF_BOTH = ("limit", "cursor", "email", "batch", "created_from", "created_to", "debited", "credited", "allocated")
_KNOWN = {
    "transactions": (*_OF_BOTH, "reference", "state", "user"),
    "batches": (*_OF_BOTH, "idempotency_key", "label", "status"),
}
_STATUSES = ("scheduled", "queued", "issued", "refused", "cancelled")
_STATES = ("credited", "held", "unpaid", "reversed", "returned")
_CURSOR = re.compile(r"fake-([0-9]{1,9})")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One page of a list: from the row `start` on, at most `limit` rows, those that `matches` takes."""

    matches: Callable[[dict[str, Any]], bool]
    start: int
    limit: int

    def cursor(self) -> str:
        """Return the cursor of the page after this one."""
        return f"fake-{self.start + self.limit}"


def asked_for(name: str, query: httpx.QueryParams) -> Asked | Faults:
    """Return what a query asks for, or its faults.

    Raises:
        NotInFake: it has a parameter or a value that `FakePoints` cannot judge.
    """
    faults, values = Faults(), dict(query)
    if len(values) != len(query.multi_items()):
        raise NotInFake("a parameter that is given twice")
    for field in values:
        if field not in _KNOWN[name]:
            faults.add(field, unknown(field, _KNOWN[name], "this call", "parameter"))
        elif field in ("created_from", "created_to", "user") or (name == "batches" and field in _OF_BOTH[2:]):
            raise NotInFake(f"the filter {field} of {name}")
    for field, value in values.items():
        if field in _KNOWN[name] and (fault := _fault(field, value)):
            faults.add(field, f"The {field} parameter {fault}")
    if faults:
        return faults
    start = int(found[1]) if (found := _CURSOR.fullmatch(values.get("cursor", "fake-0"))) else 0
    filters = {field: value for field, value in values.items() if field not in ("limit", "cursor")}
    return Asked(
        matches=lambda row: all(_matches(row, field, value) for field, value in filters.items()),
        start=start,
        limit=int(values.get("limit", "100")),
    )


def _matches(row: Mapping[str, Any], field: str, value: str) -> bool:
    if field == "batch":
        return bool(row["id"] // 131_072 == int(value))
    if field == "email":
        return key_of(row["email"]) == key_of(value)
    return bool(row[field] == (value.lower() == "true" if field in ("debited", "credited", "allocated") else value))


def _fault(field: str, value: str) -> str | None:
    """Say what is wrong with a value; None when nothing is."""
    if field in ("limit", "batch"):
        rule = "an integer from 1 to 1000" if field == "limit" else "the id of a batch, an integer of at least 1"
        most = 1000 if field == "limit" else INT64_MAX
        is_right = re.fullmatch("[0-9]{1,19}", value) and 1 <= int(value) <= most
        return None if is_right else f"must be {rule}, but is {_shown(value)}."
    if field in ("debited", "credited", "allocated"):
        return None if value.lower() in ("true", "false") else f"must be true or false, but is {_shown(value)}."
    words = {"status": _STATUSES, "state": _STATES}.get(field)
    if words is not None:
        return None if value in words else f"must be one of {', '.join(words)}, but is {_shown(value)}."
    plain = {
        "cursor": _CURSOR,
        "email": re.compile(r"[a-zA-Z0-9.-]+@[a-zA-Z0-9.-]+"),
        "idempotency_key": re.compile(r"[!-~]{1,255}"),
        "label": re.compile(r"[^\0]{1,255}"),
        "reference": re.compile(r"[!-~]{1,128}"),
    }.get(field)
    if plain is not None and not plain.fullmatch(value):
        raise NotInFake(f"such a value of {field}")
    return None


def _shown(text: str) -> str:
    if len(text) > 40 or not text.isprintable():
        raise NotInFake("such a value")
    return f"“{text}”" if text else "empty"
