"""What callers send: the body of verify and send, checked whole, with every fault in one answer.

The checks are written out instead of declared, because the contract asks for more than a model gives:
a body with a wrong type in one place still has its presence, its limits and its addresses reported.
"""

import codecs
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from pydantic_core import from_json

from app.acceptance import IssueRequest
from app.api.call.faults import FaultsFound
from app.errors import InvalidAddress, InvalidRequest
from app.settings import INT64_MAX, Settings
from app.values.addresses import Address, is_costly, parse

LABEL_LENGTH_MAX = 255
FIELDS = ("recipients", "recipient", "amount", "atomic", "label")
COSTLY_CHARACTERS_MAX = 20_000
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TOO_LONG = re.compile(rb"(?<![0-9])([0-9]{4000})[0-9]{301,}")


def parse_issue_request(body: bytes, settings: Settings) -> IssueRequest:
    """Read the body of verify or send.

    Args:
        body: JSON in UTF-8.
        settings: the limits: how many recipients, how many points, whether an address may come twice.

    Raises:
        InvalidRequest: with every fault, each under its field; a bad entry under its place, `recipients.3`.
    """
    fields, refusal = _parse_object(body)
    faults = FaultsFound()
    faults.add_unknown("field", fields, FIELDS, whole="body")
    addresses = _read_addresses(fields, faults, settings)
    amount = _read_amount(fields.get("amount"), _recipients_sent(fields), faults, settings)
    atomic = _read_atomic(fields.get("atomic"), faults)
    label = _read_label(fields.get("label"), faults)
    faults.raise_if_any()
    if refusal is not None:
        raise refusal
    return IssueRequest(
        emails=[address.text for address in addresses],
        email_keys=[address.key for address in addresses],
        amount=amount,
        atomic=atomic,
        label=label,
    )


def _parse_object(body: bytes) -> tuple[dict[str, Any], InvalidRequest | None]:
    """Parse strictly: UTF-8, no lone surrogates, bounded nesting; the top must be an object.

    NaN and Infinity are no JSON, and yet written by some libraries, and an integer may have more digits than the parser
    takes: a body with them is returned with its refusal, which holds if no field has a better one.
    """
    refusal = None
    if body.startswith(_BYTE_ORDER_MARKS):
        raise InvalidRequest({"body": ["The body must be a JSON object in UTF-8: leave out the byte order mark."]})
    try:
        value = from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        refusal = InvalidRequest({"body": [f"The body must be a JSON object in UTF-8: {error}."]})
        try:
            # An integer too long to be read is as wrong when it is shorter, and then its field is known.
            value = from_json(_TOO_LONG.sub(rb"\1", body), allow_inf_nan=True, cache_strings="keys")
        except ValueError:
            raise refusal from None
    if not isinstance(value, dict):
        raise InvalidRequest({"body": [f"The body must be a JSON object, but is {_kind(value)}."]})
    return value, refusal


def _is_missing(value: object) -> bool:
    """Absent, `null`, `""` and `[]` all count as missing (contract, request body)."""
    return value is None or value in ("", [])


def _kind(value: object) -> str:
    """Name what was seen by its JSON type, without repeating it."""
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, float) and not isfinite(value):
        return "a number that is not finite"
    names = {str: "a string", int: "an integer", float: "a number with a fraction or an exponent"}
    names |= {list: "an array", dict: "an object", type(None): "null"}
    return names[type(value)]


def _read_addresses(fields: Mapping[str, Any], faults: FaultsFound, settings: Settings) -> list[Address]:
    """Return the recipients in order; with a fault, those that could be read."""
    one, many = fields.get("recipient"), fields.get("recipients")
    if _is_missing(one) and _is_missing(many):
        faults.add("recipient", "The recipient field is required when recipients is not present.")
        faults.add("recipients", "The recipients field is required when recipient is not present.")
        return []
    if not _is_missing(one) and not _is_missing(many):
        faults.add("recipient", "Send either recipient or recipients, not both.")
        faults.add("recipients", "Send either recipients or recipient, not both.")
    addresses = [] if _is_missing(many) else _read_list(many, faults, settings)
    if not _is_missing(one):
        addresses += _read_one(one, faults)
    return addresses


def _recipients_sent(fields: Mapping[str, Any]) -> int:
    """Count the entries, good or bad: what the amount comes to for all is asked whatever else is at fault."""
    one, many = fields.get("recipient"), fields.get("recipients")
    return (0 if _is_missing(one) else 1) + (len(many) if isinstance(many, list) else 0)


def _read_one(value: object, faults: FaultsFound) -> list[Address]:
    if not isinstance(value, str):
        faults.add("recipient", f"The recipient must be a string with an e-mail address, but is {_kind(value)}.")
        return []
    try:
        return [parse(value)]
    except InvalidAddress as error:
        faults.add("recipient", f"The recipient {error.sentence}")
        return []


def _read_list(value: object, faults: FaultsFound, settings: Settings) -> list[Address]:
    if not isinstance(value, list):
        faults.add("recipients", f"The recipients must be an array of e-mail addresses, but are {_kind(value)}.")
        return []
    if len(value) > settings.recipients_max:
        faults.add(
            "recipients",
            f"There must be at most {settings.recipients_max} recipients, but there are {len(value)}.",
        )
    addresses = []
    first_places: dict[str, int] = {}
    costly_characters = 0
    # What is over the limit is not looked at: a body of a million blanks shall not cost a second.
    for place, entry in enumerate(value[: settings.recipients_max]):
        if not isinstance(entry, str):
            faults.add_entry(place, f"The entry must be a string with an e-mail address, but is {_kind(entry)}.")
            continue
        # The request is refused by now: the entries that cost most are no longer all looked at.
        if faults.list_is_full and is_costly(entry):
            costly_characters += len(entry)
            if costly_characters > COSTLY_CHARACTERS_MAX:
                faults.skip_entry()
                continue
        try:
            address = parse(entry)
        except InvalidAddress as error:
            faults.add_entry(place, f"The entry {error.sentence}")
            continue
        first = first_places.setdefault(address.key, place)
        if first != place and not settings.allow_repeats:
            faults.add_entry(place, f"The entry is the same address as recipients.{first}.")
        addresses.append(address)
    return addresses


def _read_amount(value: object, recipients: int, faults: FaultsFound, settings: Settings) -> int:
    if _is_missing(value):
        faults.add("amount", "The amount field is required.")
    elif isinstance(value, bool) or not isinstance(value, int):
        faults.add("amount", f"The amount must be an integer, but is {_kind(value)}.")
    elif not 1 <= value <= settings.amount_max:
        seen = str(value) if abs(value) <= INT64_MAX else "a number beyond 64 bits"
        faults.add("amount", f"The amount must be between 1 and {settings.amount_max} points, but is {seen}.")
    elif value * recipients > INT64_MAX:
        faults.add(
            "amount",
            f"The amount for all {recipients} recipients together must not exceed {INT64_MAX} points.",
        )
    else:
        return value
    return 0


def _read_atomic(value: object, faults: FaultsFound) -> bool:
    if _is_missing(value):
        return False
    if not isinstance(value, bool):
        faults.add("atomic", f"The atomic field must be true or false, but is {_kind(value)}.")
        return False
    return value


def _read_label(value: object, faults: FaultsFound) -> str | None:
    if _is_missing(value):
        return None
    if not isinstance(value, str):
        faults.add("label", f"The label must be a string, but is {_kind(value)}.")
    elif len(value) > LABEL_LENGTH_MAX:
        faults.add("label", f"The label must have at most {LABEL_LENGTH_MAX} characters, but has {len(value)}.")
    elif "\0" in value:
        faults.add("label", "The label must not contain a NUL character.")
    else:
        return value
    return None
