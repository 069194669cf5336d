"""The kinds of fields that only a send has."""

from typing import Any, ClassVar

from app.fields.field import Field, FieldFault, Schema, Table, reference_to
from app.fields.json_values import is_integer, kind, shown_number
from app.fields.kinds import NO_NUL, Integer
from app.settings import Settings
from app.values.texts import REFERENCE, REFERENCE_LENGTH_MAX
from app.values.validation_errors import FaultsFound, unknown_name

METADATA_KEYS_MAX = 20
METADATA_KEY_LENGTH_MAX = 40
METADATA_VALUE_LENGTH_MAX = 500

TOTALS = Table(
    "Expect",
    "Control totals: what you believe to send. A difference is a fault, and nothing is written.",
    Integer("recipients", "The number of recipients.", 2, is_long=False),
    Integer("amount", "The points for all recipients together.", 100, is_long=False),
    minProperties=1,
)


class Reference(Field[str]):
    """The caller's own id of an item."""

    SCHEMA: ClassVar[Schema] = {
        "type": "string",
        "minLength": 1,
        "maxLength": REFERENCE_LENGTH_MAX,
        "pattern": REFERENCE.pattern,
    }

    def check(self, value: Any, limits: Settings) -> str:
        if not isinstance(value, str):
            raise FieldFault(f"must be a string, but is {kind(value)}.")
        if len(value) > REFERENCE_LENGTH_MAX:
            raise FieldFault(f"must have at most {REFERENCE_LENGTH_MAX} characters, but has {len(value)}.")
        if not REFERENCE.fullmatch(value):
            raise FieldFault("must have visible characters only: no blanks and no control characters.")
        return value


class Metadata(Field[dict[str, str]]):
    """The caller's own texts by key. An empty object is the same as none."""

    SCHEMA: ClassVar[Schema] = {
        "type": "object",
        "maxProperties": METADATA_KEYS_MAX,
        "propertyNames": {"minLength": 1, "maxLength": METADATA_KEY_LENGTH_MAX, "pattern": NO_NUL},
        "additionalProperties": {"type": "string", "maxLength": METADATA_VALUE_LENGTH_MAX, "pattern": NO_NUL},
    }

    def check(self, value: Any, limits: Settings) -> dict[str, str]:
        if not isinstance(value, dict):
            raise FieldFault(f"must be an object, but are {kind(value)}.")
        if len(value) > METADATA_KEYS_MAX:
            raise FieldFault(f"must have at most {METADATA_KEYS_MAX} keys, but have {len(value)}.")
        return value

    def read_value(self, value: Any, faults: FaultsFound, limits: Settings) -> dict[str, str] | None:
        texts = super().read_value(value, faults, limits)
        first = list(value.items())[:METADATA_KEYS_MAX] if isinstance(value, dict) else []
        for place, (key, text) in enumerate(first, start=1):
            if (fault := _text_fault(key, text)) is not None:
                faults.add(self.name, f"Key {place} of the {self.name} {fault}")
        return texts or None


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
