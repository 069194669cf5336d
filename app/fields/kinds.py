"""The kinds of fields that several requests have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from app.errors import InvalidAddress
from app.fields.field import Field, FieldFault, Schema, is_integer, kind, reference_to, shown_number
from app.settings import Settings
from app.values import addresses
from app.values.addresses import Address
from app.values.texts import (
    KEY_NAME_LENGTH_MAX,
    NAME_LENGTH_MAX,
    REFERENCE,
    REFERENCE_LENGTH_MAX,
    key_name_fault,
    shown,
)
from app.values.timestamps import TIMESTAMP_FORM, parse_timestamp
from app.values.validation_errors import FaultsFound

# A text without a NUL character, which PostgreSQL cannot store.
NO_NUL = "^[^\\u0000]*$"
_NOT_BLANK = r"^[^\u0000]*[^\u0000\s][^\u0000]*$"
ID: Schema = {"type": "integer", "format": "int64", "minimum": 1}


@dataclass(frozen=True, kw_only=True, eq=False)
class Integer(Field[int]):
    """An integer within bounds, if it has some; `maximum` may depend on the settings.

    `form` says what it is. `bounds` says what it must be, in place of the sentence with both bounds and the `unit`.
    """

    minimum: int | None = None
    maximum: int | Callable[[Settings], int] | None = None
    unit: str = ""
    form: str = "an integer"
    bounds: str | None = None

    def check(self, value: Any, limits: Settings) -> int:
        if not is_integer(value):
            raise FieldFault(f"must be {self.form}, but is {kind(value)}.")
        number: int = value
        maximum = self._maximum(limits)
        if (self.minimum is None or number >= self.minimum) and (maximum is None or number <= maximum):
            return number
        between = f"between {self.minimum} and {maximum} {self.unit}, but is {shown_number(number)}"
        raise FieldFault(f"must be {self.bounds or between}.")

    def schema(self, limits: Settings) -> Schema:
        bounds = {"minimum": self.minimum, "maximum": self._maximum(limits)}
        set_bounds = {name: bound for name, bound in bounds.items() if bound is not None}
        return {"type": "integer", "format": "int64"} | set_bounds

    def _maximum(self, limits: Settings) -> int | None:
        return self.maximum(limits) if callable(self.maximum) else self.maximum


@dataclass(frozen=True, kw_only=True, eq=False)
class Text(Field[str]):
    """A text for people, such as a label."""

    length_max: int

    def check(self, value: Any, limits: Settings) -> str:
        if not isinstance(value, str):
            raise FieldFault(f"must be a string, but is {kind(value)}.")
        if len(value) > self.length_max:
            raise FieldFault(f"must have at most {self.length_max} characters, but has {len(value)}.")
        if not value and self.is_required:
            raise FieldFault("must not be empty.")
        if "\0" in value:
            raise FieldFault("must not contain a NUL character.")
        return value

    def schema(self, limits: Settings) -> Schema:
        shortest = {"minLength": 1} if self.is_required else {}
        return {"type": "string", **shortest, "maxLength": self.length_max, "pattern": NO_NUL}


@dataclass(frozen=True, kw_only=True, eq=False)
class Name(Text):
    """A name without blanks around it; a name that is required, or not nullable, is not blank."""

    length_max: int = NAME_LENGTH_MAX

    def check(self, value: Any, limits: Settings) -> str:
        name = super().check(value, limits).strip()
        if not name and self._must_say_something:
            raise FieldFault("must not be blank.")
        return name

    def schema(self, limits: Settings) -> Schema:
        return super().schema(limits) | ({"pattern": _NOT_BLANK} if self._must_say_something else {})

    @property
    def _must_say_something(self) -> bool:
        return self.is_required or not self.is_nullable


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyName(Name):
    """The name of a key, as `checked_key_name` takes it."""

    length_max: int = KEY_NAME_LENGTH_MAX

    def check(self, value: Any, limits: Settings) -> str:
        name = super().check(value, limits)
        if (fault := key_name_fault(name)) is not None:
            raise FieldFault(fault)
        return name

    @property
    def _must_say_something(self) -> bool:
        return True


class Reference(Field[str]):
    """The caller's own id of something."""

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


@dataclass(frozen=True, kw_only=True, eq=False)
class OneOf(Field[str]):
    """One of some words."""

    words: Sequence[str]

    def check(self, value: Any, limits: Settings) -> str:
        if not isinstance(value, str):
            raise FieldFault(f"must be a string, but is {kind(value)}.")
        if value not in self.words:
            raise FieldFault(f"must be one of {', '.join(self.words)}, but is {shown(value)}.")
        return value

    def schema(self, limits: Settings) -> Schema:
        return {"type": "string", "pattern": f"^({'|'.join(self.words)})$"}


class Boolean(Field[bool]):
    """True or false."""

    SCHEMA: ClassVar[Schema] = {"type": "boolean"}

    def check(self, value: Any, limits: Settings) -> bool:
        if not isinstance(value, bool):
            raise FieldFault(f"field must be true or false, but is {kind(value)}.")
        return value


class Timestamp(Field[datetime]):
    """A time with its zone; it is read in UTC."""

    SCHEMA: ClassVar[Schema] = {"type": "string", "format": "date-time", "pattern": TIMESTAMP_FORM}

    def check(self, value: Any, limits: Settings) -> datetime:
        if not isinstance(value, str):
            raise FieldFault(f"must be a string with a time, but is {kind(value)}.")
        try:
            return parse_timestamp(value)
        except ValueError as error:
            raise FieldFault(str(error)) from None


class EmailAddress(Field[Address]):
    """One e-mail address; its schema is `RECIPIENT`."""

    SCHEMA: ClassVar[Schema] = reference_to("Recipient")

    def check(self, value: Any, limits: Settings) -> Address:
        if not isinstance(value, str):
            raise FieldFault(f"must be a string with an e-mail address, but is {kind(value)}.")
        try:
            return addresses.parse(value)
        except InvalidAddress as error:
            raise FieldFault(error.sentence) from None


RECIPIENT: Schema = {
    "type": "string",
    "format": "idn-email",
    "pattern": "@",
    "description": """\
An e-mail address of up to 254 characters; surrounding blanks are trimmed. International domains and local parts are
allowed. Two addresses are the same when their normalised lower-case forms are equal; dots and plus signs are not
folded.""",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Array(Field[list[Any]]):
    """An array whose entries are checked by who reads it; it may have `most`, which may depend on the settings.

    `of` names the entries. `is_unique` tells whether none may come twice; None: that is not described.
    """

    of: str
    entries: Schema
    most: int | Callable[[Settings], int]
    is_unique: Callable[[Settings], bool] | None = None

    def check(self, value: Any, limits: Settings) -> list[Any]:
        if isinstance(value, list) and value:
            return value
        seen = kind(value) if value != [] else "an empty array"
        raise FieldFault(f"must be an array of {self.of}, but are {seen}.")

    def read_value(self, value: Any, faults: FaultsFound, limits: Settings) -> list[Any] | None:
        """Return the entries up to the limit, also if there are more: their faults come in the same answer."""
        entries, most = super().read_value(value, faults, limits), self._most(limits)
        if entries is not None and len(entries) > most:
            # What is over the limit is not looked at: a body of a million blanks must not cost a second.
            faults.add(self.name, f"There must be at most {most} {self.name}, but there are {len(entries)}.")
            return entries[:most]
        return entries

    def schema(self, limits: Settings) -> Schema:
        schema: Schema = {"type": "array", "items": self.entries, "minItems": 1, "maxItems": self._most(limits)}
        return schema if self.is_unique is None else schema | {"uniqueItems": self.is_unique(limits)}

    def _most(self, limits: Settings) -> int:
        return self.most(limits) if callable(self.most) else self.most


# Of a person.
EMAIL = EmailAddress("email", "The address of the person.", "ada@example.com", is_required=True)
FIRST_NAME = Name("first_name", "The given name.", "Ada", is_required=True)
LAST_NAME = Name("last_name", "The family name; some people have none.", "Lovelace", default="")
