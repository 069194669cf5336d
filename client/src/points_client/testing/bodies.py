"""What `FakePoints` reads of a call: plain bodies and queries. It tells the faults that callers make, by their fields;
the sentences may be others than the service's.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from points_client.results import Item

RECIPIENTS_MAX, AMOUNT_MAX = 10_000, 1_000_000_000
_SEND = ("recipient", "recipients", "items", "amount", "atomic", "label", "expect", "metadata")
# An empty value counts as missing in these alone, and of an item in its label.
_MAY_BE_EMPTY = ("recipient", "recipients", "items", "amount", "atomic", "label")
_ATOM, _LABEL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+", r"(?!xn--|..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = re.compile(rf"(?=.{{3,254}}\Z)(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LABEL}(?<=[A-Za-z])\Z")
_TEXT, _VISIBLE = r"[^\0]{1,255}", r"[!-~]{1,128}"
# The texts that are known of each field and filter.
_PATTERNS = {
    **dict.fromkeys(("label", "first_name"), _TEXT),
    "last_name": f"({_TEXT})?",
    **dict.fromkeys(("reference", "external_id"), _VISIBLE),
    **dict.fromkeys(("debited", "credited", "allocated"), "true|false"),
    "idempotency_key": r"[!-~]{1,255}",
    "status": "awaiting_approval|scheduled|queued|issued|refused|cancelled|rejected",
    "state": "credited|held|unpaid|reversed|returned",
    "batch": "[1-9][0-9]{0,17}",
    "limit": "[1-9][0-9]{0,2}|1000",
    "cursor": "fake-[0-9]{1,9}",
}
_FILTERS = {
    "batches": {"idempotency_key", "label", "status"},
    "recipients": set(),
    "transactions": {"batch", "email", "reference", "state", "debited", "credited", "allocated"},
    "users": {"email", "external_id"},
}


class NotInFake(NotImplementedError, AttributeError):
    """`FakePoints` does not have this, and does not guess."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"FakePoints does not have {what}: it is no second service. "
            "Use the sandbox of a real one, which `make run` in its repository gives in half a minute."
        )


class Refusal(Exception):
    """A call that is refused, with the status, the code and the errors of the answer."""

    def __init__(self, status: int, code: str | None, errors: Mapping[str, list[str]]) -> None:
        super().__init__(str(errors))
        self.status, self.code, self.errors = status, code, dict(errors)


class Faults(dict[str, list[str]]):
    """Fields with their sentences."""

    def add(self, field: str, sentence: str | None) -> None:
        if sentence is not None:
            self.setdefault(field, []).append(f"The {field.rpartition('.')[2]} {sentence}")

    def refuse(self) -> None:
        if self:
            raise Refusal(400, None, self)


@dataclass(frozen=True, kw_only=True)
class Order:
    """A send that has no faults. Its items have all their fields; what is missing is None."""

    items: list[dict[str, Any]]
    label: str | None
    atomic: bool
    metadata: dict[str, str] | None

    def is_like(self, other: "Order") -> bool:
        """Tell whether two sends with one key are the same."""
        mine, its = ([{**item, "email": key_of(item["email"])} for item in one.items] for one in (self, other))
        return (mine, self.atomic, self.metadata or {}) == (its, other.atomic, other.metadata or {})


def key_of(email: str) -> str:
    return email.strip().lower()


def body_of(request: httpx.Request, known: Collection[str]) -> dict[str, Any]:
    """Return a body with these fields, without those that say nothing."""
    try:
        body = json.loads(request.content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise NotInFake("a body that is not an object in JSON")
    return _given(body, known, _MAY_BE_EMPTY)


def order_of(request: httpx.Request) -> Order:
    """Return the send in the body of a call.

    Raises:
        Refusal: it has faults.
    """
    body, faults = body_of(request, _SEND), Faults()
    given = [name for name in ("recipient", "recipients", "items") if name in body]
    if len(given) > 1:
        raise NotInFake("a body with several lists of recipients")
    amount, label, atomic, metadata = (body.get(name) for name in ("amount", "label", "atomic", "metadata"))
    if not isinstance(atomic, bool | None) or not _is_metadata(metadata):
        raise NotInFake("such an atomic or metadata")
    if not given:
        for name in ("recipient", "recipients"):
            faults.add(name, "field is required.")
    if amount is None and given != ["items"]:
        faults.add("amount", "field is required.")
    faults.add("amount", _amount_fault(amount))
    items = _items(given[0], body, faults) if given else []
    if given:
        _check_expect(body.get("expect"), items, faults)
    faults.refuse()
    return Order(items=items, label=label, atomic=bool(atomic), metadata=metadata)


def _items(name: str, body: Mapping[str, Any], faults: Faults) -> list[dict[str, Any]]:
    """Return the items of a body, with its defaults, and add their faults."""
    found = [body[name]] if name == "recipient" else body[name]
    if not isinstance(found, list):
        raise NotInFake(f"{name} that are no array")
    if len(found) > RECIPIENTS_MAX:
        faults.add(name, f"must be at most {RECIPIENTS_MAX}, but are {len(found)}.")
    items = []
    firsts: dict[tuple[str, str], tuple[int, bool]] = {}
    for place, one in enumerate(found[:RECIPIENTS_MAX]):
        where = name if name == "recipient" else f"{name}.{place}"
        item = {"email": one} if name != "items" else one
        if not isinstance(item, dict):
            raise NotInFake("an item that is no object")
        own = {**dict.fromkeys(Item.__dataclass_fields__), **_given(item, Item.__dataclass_fields__, ("label",))}
        of_email = f"{where}.email" if name == "items" else where
        faults.add(of_email, _email_fault(own["email"]))
        if name == "items":
            needed = own["amount"] is None and "amount" not in body
            faults.add(f"{where}.amount", "field is required." if needed else _amount_fault(own["amount"]))
        has_reference = own["reference"] is not None
        address = firsts.setdefault(("email", key_of(str(own["email"]))), (place, has_reference))
        if of_email not in faults and address[0] != place and not (has_reference and address[1]):
            faults.add(of_email, f"is the same address as that of {name}.{address[0]}.")
        if has_reference and firsts.setdefault(("reference", own["reference"]), (place, True))[0] != place:
            faults.add(f"{where}.reference", "is that of an item before.")
        items.append({name: body.get(name) if own[name] is None else own[name] for name in Item.__dataclass_fields__})
    return items


def person_of(request: httpx.Request, known: Collection[str]) -> dict[str, Any]:
    """Return the person in the body of a call; `last_name` is never None.

    Raises:
        Refusal: it has faults.
    """
    body, faults = {**dict.fromkeys(known), **body_of(request, known)}, Faults()
    faults.add("email", _email_fault(body["email"]))
    if not str(body["first_name"] or "").strip():
        faults.add("first_name", "field is required.")
    faults.refuse()
    stripped = {name: None if value is None else value.strip() for name, value in body.items()}
    return stripped | {"last_name": stripped["last_name"] or ""}


def page_of(name: str, query: httpx.QueryParams, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the page of a list that a query asks for. A cursor counts from the oldest row: there may be newer ones."""
    asked = dict(query)
    for field, value in query.multi_items():
        is_known = field in _FILTERS[name] | {"limit", "cursor"} and _is_text_of(field, value)
        if not is_known or len(query.get_list(field)) > 1:
            raise NotInFake(f"the filter {field}={value} of {name}")
    limit, cursor = int(asked.pop("limit", 100)), asked.pop("cursor", None)
    found = [row for row in rows if all(_is_like(row, field, value) for field, value in asked.items())]
    start = 0 if cursor is None else max(0, len(found) - int(cursor.removeprefix("fake-")))
    left = len(found) - start - limit
    return {name: found[start : start + limit], "next_cursor": f"fake-{left}" if left > 0 else None}


def _is_like(row: Mapping[str, Any], field: str, value: str) -> bool:
    if field == "batch":
        return bool(row["id"] // 131_072 == int(value))
    if field == "email":
        return key_of(row["email"]) == key_of(value)
    return bool(row[field] == {"true": True, "false": False}.get(value, value))


def _given(body: Mapping[str, Any], known: Collection[str], may_be_empty: Collection[str]) -> dict[str, Any]:
    empty = {name for name in may_be_empty if body.get(name) in ("", [])}
    given = {name: value for name, value in body.items() if value is not None and name not in empty}
    for name in body:
        if name not in known or not (name == "email" or name not in given or _is_text_of(name, given[name])):
            raise NotInFake(f"the field {name}, or what it holds")
    return given


def _is_text_of(name: str, value: object) -> bool:
    if name == "email":
        return isinstance(value, str) and bool(_EMAIL.fullmatch(value))
    return name not in _PATTERNS or (isinstance(value, str) and bool(re.fullmatch(_PATTERNS[name], value)))


def _is_metadata(value: object) -> bool:
    return value is None or (
        isinstance(value, dict)
        and 1 <= len(value) <= 20
        and all(re.fullmatch(r"[^\0]{1,40}", key) for key in value)
        and all(isinstance(text, str) and re.fullmatch(r"[^\0]{0,500}", text) for text in value.values())
    )


def _email_fault(value: object) -> str | None:
    if value is None:
        return "field is required."
    if not isinstance(value, str):
        return "must be a string with an e-mail address."
    if "@" not in value:
        return "must be an e-mail address: it has no @-sign."
    if not _EMAIL.fullmatch(value.strip()):
        raise NotInFake(f"a way to tell whether {value!r} is an e-mail address")
    return None


def _amount_fault(value: object) -> str | None:
    if value is None or (type(value) is int and 1 <= value <= AMOUNT_MAX):
        return None
    return f"must be an integer between 1 and {AMOUNT_MAX} points."


def _check_expect(expect: object, items: list[dict[str, Any]], faults: Faults) -> None:
    if expect is None:
        return
    amounts = [item["amount"] for item in items]
    found = {"recipients": len(items), "amount": sum(one for one in amounts if type(one) is int)}
    if not isinstance(expect, dict) or not expect or not expect.keys() <= found.keys():
        raise NotInFake("such an expect")
    for name, value in expect.items():
        if value != found[name] and (name == "recipients" or not faults):
            faults.add("expect", f"field names {value} {name}, but {found[name]} are sent.")
