"""The fields of verify and send: a row says how a field is read, and how it is described to callers.

A new optional field on which no other depends is a row here, named in `SEND` and in `KEPT`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from app.fields.field import Field, FieldFault, Schema, Table, is_integer, kind, reference_to, shown_number
from app.fields.kinds import NO_NUL, Array, Boolean, EmailAddress, Integer, Reference, Text, Timestamp
from app.settings import Settings
from app.values.texts import LABEL_LENGTH_MAX, REFERENCE_LENGTH_MAX
from app.values.timestamps import HOLD_DAYS_MAX
from app.values.validation_errors import FaultsFound, unknown_name

METADATA_KEYS_MAX = 20
METADATA_KEY_LENGTH_MAX = 40
METADATA_VALUE_LENGTH_MAX = 500

TOTALS = Table(
    "Expect",
    "Control totals: what you believe to send. A difference is a fault, and nothing is written.",
    Integer("recipients", "The number of recipients.", 2),
    Integer("amount", "The points for all recipients together.", 100),
    minProperties=1,
)


class Metadata(Field[dict[str, str]]):
    """The caller's own texts by key."""

    SCHEMA: ClassVar[Schema] = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": METADATA_KEYS_MAX,
        "propertyNames": {"minLength": 1, "maxLength": METADATA_KEY_LENGTH_MAX, "pattern": NO_NUL},
        "additionalProperties": {"type": "string", "maxLength": METADATA_VALUE_LENGTH_MAX, "pattern": NO_NUL},
    }

    def check(self, value: Any, limits: Settings) -> dict[str, str]:
        if not isinstance(value, dict):
            raise FieldFault(f"must be an object, but are {kind(value)}.")
        if not value:
            raise FieldFault("must have at least one key, but have none.")
        if len(value) > METADATA_KEYS_MAX:
            raise FieldFault(f"must have at most {METADATA_KEYS_MAX} keys, but have {len(value)}.")
        return value

    def read_value(self, value: Any, faults: FaultsFound, limits: Settings) -> dict[str, str] | None:
        texts = super().read_value(value, faults, limits)
        first = list(value.items())[:METADATA_KEYS_MAX] if isinstance(value, dict) else []
        for place, (key, text) in enumerate(first, start=1):
            if (fault := _text_fault(key, text)) is not None:
                faults.add(self.name, f"Key {place} of the {self.name} {fault}")
        return texts


def _text_fault(key: str, text: object) -> str | None:
    if not 1 <= len(key) <= METADATA_KEY_LENGTH_MAX:
        return f"must have 1 to {METADATA_KEY_LENGTH_MAX} characters, but has {len(key)}."
    if not isinstance(text, str):
        return f"must have a string as its value, but has {kind(text)}."
    if len(text) > METADATA_VALUE_LENGTH_MAX:
        return f"must have a value of at most {METADATA_VALUE_LENGTH_MAX} characters, but has one of {len(text)}."
    if "\0" in key + text:
        return "must not contain a NUL character, nor must its value."
    return None


class Totals(Field[dict[str, Any]]):
    """The caller's control totals."""

    SCHEMA: ClassVar[Schema] = reference_to(TOTALS.schema_name)

    def check(self, value: Any, limits: Settings) -> dict[str, Any]:
        if isinstance(value, dict) and value:
            return value
        seen = kind(value) if value != {} else "an empty object"
        raise FieldFault(f"field must be an object with recipients, amount or both, but is {seen}.")


def check_totals(expected: dict[str, Any], faults: FaultsFound, *, recipients: int, amount: int | None) -> None:
    """Compare the caller's control totals with what is sent.

    Args:
        expected: the totals as `Totals` has read them.
        recipients: how many were sent, valid or not.
        amount: the points for all of them; None when an amount is at fault.
    """
    for name in expected:
        if name not in TOTALS.names:
            faults.add("expect", unknown_name("field", name, TOTALS.names, taker="expect"))
    for name, sent, unit in (("recipients", recipients, "recipients"), ("amount", amount, "points")):
        value = expected.get(name)
        if value is None:
            continue
        if not is_integer(value):
            faults.add("expect", f"The {name} expected must be an integer, but is {kind(value)}.")
        elif sent is not None and value != sent:
            faults.add("expect", f"{shown_number(value)} {unit} are expected, but {sent} are sent.")


def _once(about: str, sentence: str) -> Callable[[Settings], str]:
    """Return a description that ends with `sentence`, unless an address may come twice."""
    return lambda limits: about if limits.allow_repeats else f"{about} {sentence}"


def _most_recipients(limits: Settings) -> int:
    return limits.recipients_max


RECIPIENTS = Array(
    "recipients",
    _once("E-mail addresses, in order. Required unless `recipient` is sent.", "No address twice."),
    of="e-mail addresses",
    entries=reference_to("Recipient"),
    most=_most_recipients,
    is_unique=lambda limits: not limits.allow_repeats,
    empty_is_missing=True,
)
RECIPIENT = EmailAddress(
    "recipient",
    "One e-mail address, the same as a list of one. Required unless `recipients` is sent.",
    empty_is_missing=True,
)
ITEMS = Array(
    "items",
    "In order, in place of `recipient` and `recipients`. The first item that the balance cannot pay ends the paying: it"
    " and all items after it are not debited, not even smaller ones.",
    of="objects",
    entries=reference_to("Item"),
    most=_most_recipients,
    empty_is_missing=True,
)
AMOUNT = Integer(
    "amount",
    'Points for **each** recipient, or for each item without its own. `10.0`, `1e1` and `"10"` are not integers.',
    50,
    minimum=1,
    maximum=lambda limits: limits.amount_max,
    unit="points",
    is_required=True,
    empty_is_missing=True,
)
# Beside items: the amount of those without their own.
DEFAULT_AMOUNT = replace(AMOUNT, is_required=False)
ATOMIC = Boolean(
    "atomic",
    "True: debit nobody if the balance cannot pay the whole batch.",
    True,
    default=False,
    empty_is_missing=True,
)
LABEL = Text(
    "label", "Kept on every transaction of the batch.", "January", length_max=LABEL_LENGTH_MAX, empty_is_missing=True
)
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
)

# Kept in columns of their names, with these types; nothing else of a send depends on them.
KEPT = {METADATA.name: "json", HOLD_DAYS.name: "int"}

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
    """The fields of verify or send. An `IssueRequest` has the `options` as they are read; `kept` has the others."""

    def __init__(self, schema_name: str, about: str, *rows: Field[Any]) -> None:
        super().__init__(schema_name, about, *rows)
        together = (RECIPIENTS, RECIPIENT, ITEMS, AMOUNT, EXPECT)  # They depend on each other.
        self.options = [row for row in rows if row not in together and row.name not in KEPT]
        self.kept = [row for row in rows if row.name in KEPT]


VERIFY = IssueTable(
    "IssueRequest",
    'Points for recipients, in one of `recipients`, `recipient` and `items`. Null, `""` and `[]` count as missing; an'
    " empty `expect` or `metadata` is a fault, and so is a field that is not listed.",
    *(RECIPIENTS, RECIPIENT, ITEMS, AMOUNT, ATOMIC, LABEL, EXPECT, METADATA),
)
SEND = IssueTable(
    "SendRequest",
    "The body of verify, with when to issue it and for how long to hold the points; an empty one of these is a fault.",
    *(*VERIFY.rows, SEND_AT, HOLD_DAYS),
)

NEW_SEND_AT = replace(SEND_AT, is_required=True)
RESCHEDULE = Table("Reschedule", "Another moment for a scheduled batch.", NEW_SEND_AT)
