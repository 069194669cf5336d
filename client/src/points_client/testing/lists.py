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
    "requests": ("limit", "cursor", "created_from", "created_to", "request_id", "api_key", "batch", "status"),
    "users": ("limit", "cursor", "email", "external_id"),
    "organizations": ("limit", "cursor"),
}
_STATUSES = ("awaiting_approval", "scheduled", "queued", "issued", "refused", "cancelled", "rejected")
_STATES = ("credited", "held", "unpaid", "reversed", "returned")
_CURSOR = re.compile(r"fake-([0-9]{1,9})")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One page of a list: the last `left` rows (None: all) that `matches` takes, at most `limit` of them.

    A cursor counts from the oldest row, since there may be newer rows by the next page.
    """

    matches: Callable[[dict[str, Any]], bool]
    left: int | None
    limit: int

    def page_of(self, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str | None]:
        """Return the page of the rows that match, newest first, and the cursor of the next page."""
        start = 0 if self.left is None else max(0, len(rows) - self.left)
        page = rows[start : start + self.limit]
        left = len(rows) - start - len(page)
        return page, f"fake-{left}" if left else None


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
        if field in _KNOWN[name] and (fault := _fault_of(name, field, value)):
            faults.add(field, f"The {field} parameter {fault}")
    if faults:
        return faults
    found = _CURSOR.fullmatch(values.get("cursor", ""))
    filters = {field: value for field, value in values.items() if field not in ("limit", "cursor")}
    return Asked(
        matches=lambda row: all(_IS_LIKE[name](row, field, value) for field, value in filters.items()),
        left=None if found is None else int(found[1]),
        limit=int(values.get("limit", "100")),
    )


def _is_like_call(row: Mapping[str, Any], field: str, value: str) -> bool:
    if field == "status":
        return bool(re.fullmatch(value.replace("x", "."), str(row["status"])))
    return bool(row[field] == value if field == "request_id" else row[f"{field}_id"] == int(value))


def _is_like(row: Mapping[str, Any], field: str, value: str) -> bool:
    if field == "batch":
        return bool(row["id"] // 131_072 == int(value))
    if field == "email":
        return key_of(row["email"]) == key_of(value)
    return bool(row[field] == (value.lower() == "true" if field in ("debited", "credited", "allocated") else value))


_IS_LIKE = {"transactions": _is_like, "batches": _is_like, "requests": _is_like_call, "users": _is_like}


def _fault_of(name: str, field: str, value: str) -> str | None:
    """Say what is wrong with a value; None when nothing is."""
    if name == "requests" and field == "status":
        rule = "must be a status such as 403, or 4xx for a hundred of them, but is"
        return None if re.fullmatch(r"[2-5]([0-9]{2}|xx)", value) else f"{rule} {shown(value)}."
    return _fault(field, value)


def _fault(field: str, value: str) -> str | None:
    if field in ("limit", "batch", "api_key"):
        noun = field.removeprefix("api_")
        rule = "an integer from 1 to 1000" if field == "limit" else f"the id of a {noun}, an integer of at least 1"
        most = 1000 if field == "limit" else INT64_MAX
        is_right = re.fullmatch("[0-9]{1,19}", value) and 1 <= int(value) <= most
        return None if is_right else f"must be {rule}, but is {shown(value)}."
    if field in ("debited", "credited", "allocated"):
        return None if value.lower() in ("true", "false") else f"must be true or false, but is {shown(value)}."
    words = {"status": _STATUSES, "state": _STATES}.get(field)
    if words is not None:
        return None if value in words else f"must be one of {', '.join(words)}, but is {shown(value)}."
    plain = {
        "cursor": _CURSOR,
        "email": re.compile(r"[a-zA-Z0-9.-]+@[a-zA-Z0-9.-]+"),
        "idempotency_key": re.compile(r"[!-~]{1,255}"),
        "label": re.compile(r"[^\0]{1,255}"),
        "reference": re.compile(r"[!-~]{1,128}"),
        "external_id": re.compile(r"[!-~]{1,128}"),
        "request_id": re.compile(r"(?!.*pts_)[A-Za-z0-9._:/+=-]{1,128}"),
    }.get(field)
    if plain is not None and not plain.fullmatch(value):
        raise NotInFake(f"such a value of {field}")
    return None


def shown(text: str) -> str:
    """Return a value as the service shows it in a sentence."""
    if len(text) > 40 or not text.isprintable():
        raise NotInFake("such a value")
    return f"“{text}”" if text else "empty"
