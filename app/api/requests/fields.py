"""The single fields of a body: each is checked, and each fault gets one sentence."""

from datetime import UTC, datetime

from app.api.requests.json_object import is_integer, is_missing, kind
from app.settings import INT64_MAX, Settings
from app.values import send_at
from app.values.hold_days import HOLD_DAYS_MAX
from app.values.texts import LABEL_LENGTH_MAX, REFERENCE, REFERENCE_LENGTH_MAX
from app.values.timestamps import parse_timestamp
from app.values.validation_errors import FaultsFound, unknown_name

METADATA_KEYS_MAX = 20
METADATA_KEY_LENGTH_MAX = 40
METADATA_VALUE_LENGTH_MAX = 500
EXPECT_FIELDS = ("recipients", "amount")


def amount_fault(value: object, settings: Settings) -> str | None:
    """Say what is wrong with an amount for one recipient; None when nothing is."""
    if not is_integer(value):
        return f"The amount must be an integer, but is {kind(value)}."
    assert isinstance(value, int)
    if not 1 <= value <= settings.amount_max:
        return f"The amount must be between 1 and {settings.amount_max} points, but is {shown_number(value)}."
    return None


def text_fault(name: str, value: object, *, length_max: int) -> str | None:
    """Say what is wrong with a text for people, such as a label; None when nothing is."""
    if not isinstance(value, str):
        return f"The {name} must be a string, but is {kind(value)}."
    if len(value) > length_max:
        return f"The {name} must have at most {length_max} characters, but has {len(value)}."
    if "\0" in value:
        return f"The {name} must not contain a NUL character."
    return None


def label_fault(value: object) -> str | None:
    """Say what is wrong with a label; None when nothing is."""
    return text_fault("label", value, length_max=LABEL_LENGTH_MAX)


def reference_fault(value: object) -> str | None:
    """Say what is wrong with a reference; None when nothing is."""
    if not isinstance(value, str):
        return f"The reference must be a string, but is {kind(value)}."
    if len(value) > REFERENCE_LENGTH_MAX:
        return f"The reference must have at most {REFERENCE_LENGTH_MAX} characters, but has {len(value)}."
    if not REFERENCE.fullmatch(value):
        return "The reference must have visible characters only: no blanks and no control characters."
    return None


def read_amount(value: object, faults: FaultsFound, settings: Settings, *, is_required: bool) -> int | None:
    """Return the amount of the body; None when it is missing or at fault."""
    if is_missing(value):
        if is_required:
            faults.add("amount", "The amount field is required.")
        return None
    if (sentence := amount_fault(value, settings)) is not None:
        faults.add("amount", sentence)
        return None
    assert isinstance(value, int)
    return value


def read_atomic(value: object, faults: FaultsFound) -> bool:
    """Return `atomic`, false when it is missing."""
    if is_missing(value):
        return False
    if not isinstance(value, bool):
        faults.add("atomic", f"The atomic field must be true or false, but is {kind(value)}.")
        return False
    return value


def read_label(value: object, faults: FaultsFound) -> str | None:
    """Return the label of the body; None when it is missing."""
    if is_missing(value):
        return None
    if (sentence := label_fault(value)) is not None:
        faults.add("label", sentence)
        return None
    assert isinstance(value, str)
    return value


def read_moment(name: str, value: object, faults: FaultsFound) -> datetime | None:
    """Return the moment of a field, in UTC; None when it is missing. How far ahead it lies is checked later."""
    if is_missing(value):
        return None
    if not isinstance(value, str):
        faults.add(name, f"The {name} must be a string with a time, but is {kind(value)}.")
        return None
    try:
        return parse_timestamp(value)
    except ValueError as error:
        faults.add(name, f"The {name} {error}")
        return None


def read_hold_days(value: object, faults: FaultsFound) -> int | None:
    """Return `hold_days`; None when it is missing."""
    if is_missing(value):
        return None
    if not is_integer(value):
        faults.add("hold_days", f"The hold_days must be an integer, but is {kind(value)}.")
        return None
    assert isinstance(value, int)
    if not 1 <= value <= HOLD_DAYS_MAX:
        days = f"must be between 1 and {HOLD_DAYS_MAX} days, but is {shown_number(value)}"
        faults.add("hold_days", f"The hold_days {days}.")
        return None
    return value


def check_send_at_too(moment: datetime | None, faults: FaultsFound) -> None:
    """Check how far ahead `send_at` lies, but only if the body has other faults: one answer reports them all.

    Without other faults PostgreSQL's clock decides, and only for a new batch: a repeated call may come later.
    """
    if moment is None or faults.is_empty:
        return
    if (sentence := send_at.bounds_fault(moment, now=datetime.now(UTC))) is not None:
        faults.add("send_at", sentence)


def check_expect(value: object, faults: FaultsFound, *, recipients: int, amount: int | None) -> None:
    """Check the caller's control totals.

    Args:
        recipients: how many were sent, valid or not.
        amount: the points for all of them; None when an amount is at fault.
    """
    if is_missing(value):
        return
    if not isinstance(value, dict) or not value:
        seen = kind(value) if value != {} else "an empty object"
        faults.add("expect", f"The expect field must be an object with recipients, amount or both, but is {seen}.")
        return
    for name in value:
        if name not in EXPECT_FIELDS:
            faults.add("expect", unknown_name("field", name, EXPECT_FIELDS, taker="expect"))
    for name, sent in (("recipients", recipients), ("amount", amount)):
        expected = value.get(name)
        if expected is None:
            continue
        if not is_integer(expected):
            faults.add("expect", f"The {name} expected must be an integer, but is {kind(expected)}.")
        elif sent is not None and expected != sent:
            what = "recipients" if name == "recipients" else "points"
            faults.add("expect", f"{shown_number(expected)} {what} are expected, but {sent} are sent.")


def read_metadata(value: object, faults: FaultsFound) -> dict[str, str] | None:
    """Return `metadata`; None when it is missing or empty."""
    if is_missing(value) or value == {}:
        return None
    if not isinstance(value, dict):
        faults.add("metadata", f"The metadata must be an object, but are {kind(value)}.")
        return None
    if len(value) > METADATA_KEYS_MAX:
        faults.add("metadata", f"The metadata must have at most {METADATA_KEYS_MAX} keys, but have {len(value)}.")
    for place, (key, text) in enumerate(list(value.items())[:METADATA_KEYS_MAX], start=1):
        if (sentence := _metadata_fault(key, text)) is not None:
            faults.add("metadata", f"Key {place} of the metadata {sentence}")
    return value


def _metadata_fault(key: str, text: object) -> str | None:
    if not 1 <= len(key) <= METADATA_KEY_LENGTH_MAX:
        return f"must have 1 to {METADATA_KEY_LENGTH_MAX} characters, but has {len(key)}."
    if not isinstance(text, str):
        return f"must have a string as its value, but has {kind(text)}."
    if len(text) > METADATA_VALUE_LENGTH_MAX:
        return f"must have a value of at most {METADATA_VALUE_LENGTH_MAX} characters, but has one of {len(text)}."
    if "\0" in key + text:
        return "must not contain a NUL character, nor must its value."
    return None


def shown_number(number: int) -> str:
    """Return a number for a sentence; one beyond 64 bits may be of any length and is not shown."""
    return str(number) if abs(number) <= INT64_MAX else "a number beyond 64 bits"
