"""The bodies of verify and send, and of the calls that move a moment: parsed, with every fault in one answer.

The checks are not declared as a model, because the contract asks for more: if one field has a wrong type, the faults of
all other fields are still reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.api.requests.fields import (
    check_expect,
    check_send_at_too,
    read_amount,
    read_atomic,
    read_hold_days,
    read_label,
    read_metadata,
    read_moment,
)
from app.api.requests.items import Items
from app.api.requests.json_object import is_missing, parse_object
from app.api.requests.recipients import read_recipient, read_recipients
from app.batches.accept import IssueRequest
from app.settings import INT64_MAX, Settings
from app.values.addresses import Address
from app.values.validation_errors import FaultsFound

FIELDS = ("recipients", "recipient", "items", "amount", "atomic", "label", "expect", "metadata")
FIELDS_OF_SEND = (*FIELDS, "send_at", "hold_days")


def parse_issue_request(body: bytes, settings: Settings, known: Sequence[str] = FIELDS) -> IssueRequest:
    """Read the body of verify or send.

    Args:
        body: JSON in UTF-8.
        known: the fields that the call takes.
        settings: the limits of recipients and points, and whether an address may come twice.

    Raises:
        InvalidRequest: with every fault, each under its field; a bad entry under its place, `recipients.3`.
    """
    fields, refusal = parse_object(body)
    faults = FaultsFound()
    faults.add_unknown("field", fields, known, whole="body")
    atomic, label = read_atomic(fields.get("atomic"), faults), read_label(fields.get("label"), faults)
    metadata = read_metadata(fields.get("metadata"), faults)
    send_at = read_moment("send_at", fields.get("send_at"), faults) if "send_at" in known else None
    hold_days = read_hold_days(fields.get("hold_days"), faults) if "hold_days" in known else None
    items = None if is_missing(fields.get("items")) else Items(fields, faults, settings)
    addresses = _read_addresses(fields, faults, settings)
    amount = read_amount(fields.get("amount"), faults, settings, is_required=items is None)
    count = _recipients_sent(fields)
    if items is not None:
        points = sum(items.amounts) if len(items.amounts) == count else None
    else:
        points = None if amount is None else amount * count
        if points is not None and points > INT64_MAX:
            limit = f"must not exceed {INT64_MAX} points, but is {points}"
            faults.add("amount", f"The amount for all {count} recipients together {limit}.")
    check_expect(fields.get("expect"), faults, recipients=count, amount=points)
    check_send_at_too(send_at, faults)
    faults.raise_if_any()
    if refusal is not None:
        raise refusal
    addresses = addresses if items is None else items.addresses
    uniform = IssueRequest(
        emails=[address.text for address in addresses],
        email_keys=[address.key for address in addresses],
        amount=amount,
        atomic=atomic,
        label=label,
        metadata=metadata,
        send_at=send_at,
        hold_days=hold_days,
    )
    return uniform if items is None else replace(uniform, **items.columns())


def _read_addresses(fields: Mapping[str, Any], faults: FaultsFound, settings: Settings) -> list[Address]:
    """Return the addresses of `recipient` or `recipients`. One of these and `items` must be sent, and only one."""
    one, many = fields.get("recipient"), fields.get("recipients")
    sent = [name for name in ("recipient", "recipients", "items") if not is_missing(fields.get(name))]
    if not sent:
        faults.add("recipient", "The recipient field is required when recipients is not present.")
        faults.add("recipients", "The recipients field is required when recipient is not present.")
    for name in sent if len(sent) > 1 else ():
        others = [other for other in sent if other != name]
        faults.add(
            name, f"Send either {' or '.join([name, *others])}, not {'both' if len(sent) == 2 else 'all three'}."
        )
    addresses = [] if is_missing(many) else read_recipients(many, faults, settings)
    return addresses if is_missing(one) else addresses + read_recipient(one, faults)


def _recipients_sent(fields: Mapping[str, Any]) -> int:
    """Count the entries, valid or not: the total amount is checked even if entries are at fault."""
    lists = [fields[name] for name in ("recipients", "items") if isinstance(fields.get(name), list)]
    return sum(map(len, lists)) + (0 if is_missing(fields.get("recipient")) else 1)


def parse_reschedule(body: bytes) -> datetime:
    """Read the body that moves a scheduled batch: its new `send_at`.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    return _parse_moment(body, "send_at")


def parse_extend(body: bytes) -> datetime:
    """Read the body that holds a transaction for longer: its new `held_until`.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    return _parse_moment(body, "held_until")


def _parse_moment(body: bytes, name: str) -> datetime:
    fields, refusal = parse_object(body)
    faults = FaultsFound()
    faults.add_unknown("field", fields, (name,), whole="body")
    if is_missing(fields.get(name)):
        faults.add(name, f"The {name} field is required.")
    moment = read_moment(name, fields.get(name), faults)
    if name == "send_at":
        check_send_at_too(moment, faults)
    faults.raise_if_any()
    if refusal is not None:
        raise refusal
    assert moment is not None, "it is sent, and without a fault"
    return moment
