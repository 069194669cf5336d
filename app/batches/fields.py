"""The fields of verify and send: a row says how a field is read, and how it is described to callers.

A new optional field that no other depends on is a row here, named in `SEND`, and an attribute of `IssueRequest`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from app.batches.field_kinds import Metadata, Reference, Totals
from app.fields.field import Field, Table, reference_to
from app.fields.kinds import Array, Boolean, EmailAddress, Integer, Text, Timestamp
from app.settings import Settings
from app.values.hold_days import HOLD_DAYS_MAX
from app.values.texts import LABEL_LENGTH_MAX, REFERENCE_LENGTH_MAX


def _once(about: str, sentence: str) -> Callable[[Settings], str]:
    """Return a description that ends with `sentence`, unless an address may come twice."""
    return lambda limits: about if limits.allow_repeats else f"{about} {sentence}"


RECIPIENTS = Array(
    "recipients",
    _once("E-mail addresses, in order. Required unless `recipient` is sent.", "No address twice."),
    of="e-mail addresses",
    entries=reference_to("Recipient"),
    is_unique=lambda limits: not limits.allow_repeats,
)
RECIPIENT = EmailAddress(
    "recipient", "One e-mail address, the same as a list of one. Required unless `recipients` is sent."
)
ITEMS = Array(
    "items",
    "In order, in place of `recipient` and `recipients`. The first item that the balance cannot pay ends the paying: it"
    " and all items after it are not debited, not even smaller ones.",
    of="objects",
    entries=reference_to("Item"),
)
AMOUNT = Integer(
    "amount",
    'Points for **each** recipient, or for each item without its own. `10.0`, `1e1` and `"10"` are not integers.',
    50,
    minimum=1,
    maximum=lambda limits: limits.amount_max,
    unit="points",
    is_required=True,
)
# Beside items: the amount of those without their own.
DEFAULT_AMOUNT = replace(AMOUNT, is_required=False)
ATOMIC = Boolean("atomic", "True: debit nobody if the balance cannot pay the whole batch.", True, default=False)
LABEL = Text("label", "Kept on every transaction of the batch.", "January", length_max=LABEL_LENGTH_MAX)
EXPECT = Totals("expect", "Control totals, either or both. A difference is a 400, and nothing is written.")
METADATA = Metadata("metadata", "Shown on the batch, and never on its transactions.", {"run": "2026-01"})
SEND_AT = Timestamp("send_at", "When to issue the batch: ISO 8601 with a zone, 1 minute to 366 days ahead.")
HOLD_DAYS = Integer(
    "hold_days",
    f"For how many days points may be held, 1 to {HOLD_DAYS_MAX:,}; then they go back to the organization. The default"
    " is the organization's own number of days, if it has one.",
    None,
    minimum=1,
    maximum=HOLD_DAYS_MAX,
    unit="days",
    is_long=False,
)

ITEM_EMAIL = EmailAddress(
    "email", _once("Its e-mail address.", "Twice only if both items have a `reference`."), is_required=True
)
ITEM_AMOUNT = replace(DEFAULT_AMOUNT, about="Points for this recipient. Required unless the body has an `amount`.")
ITEM_LABEL = replace(LABEL, about="Kept on its transaction, in place of the body's label.", example=None)
ITEM_REFERENCE = Reference(
    "reference",
    f"Your own id of the item: 1 to {REFERENCE_LENGTH_MAX} visible characters, unique in the batch. Shown on its"
    " transaction; the list of transactions can filter by it.",
    "4711",
)
ITEM = Table(
    "Item",
    "One recipient, with its own amount, label and reference.",
    *(ITEM_EMAIL, ITEM_AMOUNT, ITEM_LABEL, ITEM_REFERENCE),
)


class IssueTable(Table):
    """The fields of verify or send. `options` are stored in an `IssueRequest` as they are read."""

    def __init__(self, schema_name: str, about: str, *rows: Field[Any]) -> None:
        super().__init__(schema_name, about, *rows)
        together = (RECIPIENTS, RECIPIENT, ITEMS, AMOUNT, EXPECT)  # They depend on each other.
        self.options = [row for row in rows if row not in together]


VERIFY = IssueTable(
    "IssueRequest",
    'Points for recipients, in one of `recipients`, `recipient` and `items`. Null, `""` and `[]` count as missing. A'
    " field that is not listed is a fault.",
    *(RECIPIENTS, RECIPIENT, ITEMS, AMOUNT, ATOMIC, LABEL, EXPECT, METADATA),
)
SEND = IssueTable(
    "SendRequest",
    "The body of verify, with when to issue it and for how long to hold the points.",
    *(*VERIFY.rows, SEND_AT, HOLD_DAYS),
)

NEW_SEND_AT = replace(SEND_AT, is_required=True)
RESCHEDULE = Table("Reschedule", "Another moment for a scheduled batch.", NEW_SEND_AT)
