"""A request to issue points: what it holds, and how it is read from a mapping, with every fault in one answer."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from app.batches.entries import Items, read_recipients
from app.batches.fields import (
    AMOUNT,
    DEFAULT_AMOUNT,
    EXPECT,
    NEW_SEND_AT,
    RECIPIENT,
    RECIPIENTS,
    RESCHEDULE,
    VERIFY,
    IssueTable,
    check_totals,
)
from app.fields.field import is_missing
from app.settings import INT64_MAX, Settings
from app.values.addresses import Address
from app.values.numbers import paid_count
from app.values.timestamps import bounds_fault
from app.values.validation_errors import FaultsFound


@dataclass(frozen=True, kw_only=True, slots=True)
class IssueRequest:
    """A valid request to issue points.

    `emails` are the addresses as sent (trimmed), in order; `email_keys` are their normalised forms in the same order.
    Each recipient gets `amount` points. Where that is None, `running_totals` holds for each recipient the sum of the
    points up to and including its own. `labels` (where they differ from the batch's `label`) and `references` are None
    when no item has one. `send_at` is when to issue it, in UTC; None: at once. `kept` are the fields that are kept with
    the batch as they were sent. `rehearsed_unpaid`: with a development key, its balance pays nobody; it is how the call
    is answered, and no part of its meaning.
    """

    emails: Sequence[str]
    email_keys: Sequence[str]
    amount: int | None
    running_totals: Sequence[int] | None = None
    atomic: bool
    label: str | None
    labels: Sequence[str | None] | None = None
    references: Sequence[str | None] | None = None
    send_at: datetime | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)
    rehearsed_unpaid: bool = False

    @property
    def required(self) -> int:
        """The points for all recipients together."""
        return self.points_of_first(len(self.emails))

    def points_of_first(self, count: int) -> int:
        """Return the points for the first `count` recipients together."""
        if self.running_totals is not None:
            return self.running_totals[count - 1] if count else 0
        assert self.amount is not None, "a request has an amount or running totals"
        return self.amount * count

    def paid_by(self, balance: int) -> int:
        """Return how many recipients a balance pays, from the first on."""
        return paid_count(balance, recipients=len(self.emails), amount=self.amount, running_totals=self.running_totals)

    def meaning(self) -> bytes:
        """Return 32 bytes that are equal for two requests that mean the same, even if they are written differently.

        What counts is the label that each recipient gets, and not whether its item or the batch gives it.
        """
        label, labels = self.label, self.labels
        if labels is not None:
            labels = [label if own is None else own for own in labels]
            label, labels = (labels[0], None) if len(set(labels)) == 1 else (None, labels)
        digest = hashlib.sha256(f"{self.amount} {self.atomic:d} ".encode())
        digest.update(b"-" if label is None else b"+" + label.encode())
        for key in self.email_keys:
            digest.update(b"\0" + key.encode())  # Neither a label nor an address can hold a NUL.
        options = (self.running_totals, labels, self.references, self.send_at, self.kept)
        digest.update(b"\0\0" + orjson.dumps(options, option=orjson.OPT_SORT_KEYS))
        return digest.digest()


def read_issue_request(fields: Mapping[str, Any], limits: Settings, known: IssueTable = VERIFY) -> IssueRequest:
    """Read the fields of verify or send.

    Args:
        fields: as JSON has them.
        limits: the limits of recipients and points, and whether an address may come twice.
        known: the fields that the call takes.

    Raises:
        InvalidRequest: with every fault, each under its field; a bad entry under its place, `recipients.3`.
    """
    faults = known.new_faults(fields)
    options: dict[str, Any] = {row.name: row.read(fields, faults, limits) for row in known.options}
    kept = {row.name: row.read(fields, faults, limits) for row in known.kept}
    items = None if is_missing(fields.get("items")) else Items(fields, faults, limits)
    addresses = _read_addresses(fields, faults, limits)
    amount = (AMOUNT if items is None else DEFAULT_AMOUNT).read(fields, faults, limits)
    count = _recipients_sent(fields)
    if items is not None:
        points = sum(items.amounts) if len(items.amounts) == count else None
    else:
        points = None if amount is None else amount * count
        if points is not None and points > INT64_MAX:
            limit = f"must not exceed {INT64_MAX} points, but is {points}"
            faults.add("amount", f"The amount for all {count} recipients together {limit}.")
    if (expected := EXPECT.read(fields, faults, limits)) is not None:
        check_totals(expected, faults, recipients=count, amount=points)
    _check_send_at_too(options.get("send_at"), faults)
    faults.raise_if_any()
    if items is not None:
        addresses = items.addresses
    options |= {"amount": amount} if items is None else items.columns()
    return IssueRequest(
        emails=[address.text for address in addresses],
        email_keys=[address.key for address in addresses],
        kept={name: value for name, value in kept.items() if value is not None},
        **options,
    )


def _read_addresses(fields: Mapping[str, Any], faults: FaultsFound, limits: Settings) -> list[Address]:
    """Return the addresses of `recipient` or `recipients`. One of these and `items` must be sent, and only one."""
    sent = [name for name in ("recipient", "recipients", "items") if not is_missing(fields.get(name))]
    if not sent:
        faults.add("recipient", "The recipient field is required when recipients is not present.")
        faults.add("recipients", "The recipients field is required when recipient is not present.")
    for name in sent if len(sent) > 1 else ():
        others = [other for other in sent if other != name]
        faults.add(
            name, f"Send either {' or '.join([name, *others])}, not {'both' if len(sent) == 2 else 'all three'}."
        )
    entries = RECIPIENTS.read(fields, faults, limits)
    addresses = [] if entries is None else read_recipients(entries, faults, limits)
    address = RECIPIENT.read(fields, faults, limits)
    return addresses if address is None else [*addresses, address]


def _recipients_sent(fields: Mapping[str, Any]) -> int:
    """Count the entries, valid or not: the total amount is checked even if entries are at fault."""
    lists = [fields[name] for name in ("recipients", "items") if isinstance(fields.get(name), list)]
    return sum(map(len, lists)) + (0 if is_missing(fields.get("recipient")) else 1)


def _check_send_at_too(send_at: datetime | None, faults: FaultsFound) -> None:
    """Check how far ahead `send_at` lies, but only if the request has other faults: one answer reports them all.

    Without other faults PostgreSQL's clock decides, and only for a new batch: a repeated call may come later.
    """
    if send_at is None or faults.is_empty:
        return
    if (sentence := bounds_fault(send_at, now=datetime.now(UTC))) is not None:
        faults.add("send_at", sentence)


def read_reschedule(fields: Mapping[str, Any], limits: Settings) -> datetime:
    """Return the new `send_at` of a scheduled batch.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    faults = RESCHEDULE.new_faults(fields)
    send_at = NEW_SEND_AT.read(fields, faults, limits)
    _check_send_at_too(send_at, faults)
    faults.raise_if_any()
    assert send_at is not None, "it is sent, and without a fault"
    return send_at
