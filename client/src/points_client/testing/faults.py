"""The faults of a body that `FakePoints` finds: those that a program may make, not all that the service finds."""

from typing import Any

from points_client.testing.books import items_of

_FIELDS = ("recipient", "recipients", "items", "amount", "atomic", "label", "expect", "metadata")
_AMOUNT_MAX, _RECIPIENTS_MAX = 1_000_000_000, 10_000


def faults_of(body: dict[str, Any], *, is_send: bool) -> dict[str, list[str]]:
    """Return field names with sentences; empty when the body is good."""
    known = (*_FIELDS, "send_at", "hold_days") if is_send else _FIELDS
    faults = {name: ["There is no field of this name."] for name in body if name not in known}
    given = [name for name in ("recipient", "recipients", "items") if body.get(name)]
    if body.get("send_at"):
        faults["send_at"] = ["FakePoints schedules nothing."]
    if not given:
        missing = ("recipient", "recipients", *(() if body.get("amount") else ("amount",)))
        return faults | {name: [f"The {name} is required."] for name in missing}
    if len(given) > 1:
        return faults | {name: ["Only one of recipient, recipients and items may be sent."] for name in given}
    faults |= _faults_of_items(body, given[0])
    return faults or _differences(body)


def _faults_of_items(body: dict[str, Any], field: str) -> dict[str, list[str]]:
    faults: dict[str, list[str]] = {}
    items = items_of(body)
    if len(items) > _RECIPIENTS_MAX:
        faults[field] = [f"There must be at most {_RECIPIENTS_MAX} {field}, but there are {len(items)}."]
    seen: dict[str, int] = {}
    for place, item in enumerate(items):
        email = item["email"].strip().lower() if isinstance(item["email"], str) else ""
        where = {"recipient": "recipient", "recipients": f"recipients.{place}", "items": f"items.{place}.email"}[field]
        if email.count("@") != 1:
            faults[where] = ["The entry must be an e-mail address."]
        elif seen.setdefault(email, place) != place and not item["reference"]:
            faults[where] = [f"The entry is the same address as {field}.{seen[email]}."]
        amount = item["amount"]
        if not isinstance(amount, int) or isinstance(amount, bool) or not 1 <= amount <= _AMOUNT_MAX:
            where = f"items.{place}.amount" if field == "items" and body.get("amount") is None else "amount"
            faults[where] = [f"The amount must be between 1 and {_AMOUNT_MAX} points."]
    return faults


def _differences(body: dict[str, Any]) -> dict[str, list[str]]:
    items = items_of(body)
    found = {"recipients": len(items), "amount": sum(item["amount"] for item in items)}
    differing = {name: value for name, value in (body.get("expect") or {}).items() if found.get(name) != value}
    return {"expect": [f"{differing} was expected, but there are {found}."]} if differing else {}
