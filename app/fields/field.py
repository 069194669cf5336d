"""A field of a request, and the table of the fields that it takes: how they are read, and how they are described."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from math import isfinite
from typing import Any, ClassVar, Generic, TypeVar

from app.errors import Fault
from app.settings import INT64_MAX, Settings
from app.values.validation_errors import FaultsFound

_NAMES = {
    str: "a string",
    int: "an integer",
    float: "a number with a fraction or an exponent",
    list: "an array",
    dict: "an object",
    bool: "a boolean",
    type(None): "null",
}


def is_missing(value: object) -> bool:
    """Tell whether a value counts as missing: absent, `null`, `""` or `[]` (contract, request body)."""
    return value is None or value in ("", [])


def is_integer(value: object) -> bool:
    """Tell whether a value is an integer; `true` is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def kind(value: object) -> str:
    """Return a value's JSON type in words, without the value."""
    if isinstance(value, float) and not isfinite(value):
        return "a number that is not finite"
    return _NAMES[type(value)]


def shown_number(number: int) -> str:
    """Return a number for a sentence; beyond 64 bits it may be of any length, so a sentence does not show it."""
    return str(number) if abs(number) <= INT64_MAX else "a number beyond 64 bits"


# JSON Schema, as OpenAPI 3.1 has it.
Schema = dict[str, Any]
T = TypeVar("T")


class FieldFault(Exception):
    """A value is at fault; the text says what it must be, and completes “The <name> …”."""


@dataclass(frozen=True, eq=False)
class Field(ABC, Generic[T]):
    """A row of a table of fields; each kind of field is a class.

    `about` is for callers. `example` and `default` are JSON, and `...` where there is none to show. A field that is not
    required may be null if `is_nullable`: then it is not given. `""` and `[]` are as null if `empty_is_missing`; else
    `check` judges them, for an empty value must not mean what an absent one does.
    """

    SCHEMA: ClassVar[Schema] = {}

    name: str
    about: str | Callable[[Settings], str]
    example: Any = ...
    _: KW_ONLY
    default: Any = None
    is_required: bool = False
    is_nullable: bool = True
    empty_is_missing: bool = False

    @abstractmethod
    def check(self, value: Any, limits: Settings) -> T:
        """Return a value that is not missing, as it is read.

        Raises:
            FieldFault: it is at fault.
        """

    def schema(self, limits: Settings) -> Schema:
        """Describe the values that `check` lets pass; by default as the class does."""
        return self.SCHEMA

    def read(self, fields: Mapping[str, Any], faults: FaultsFound, limits: Settings) -> T | None:
        """Return the field's value; its default if it is missing, and None if it is at fault."""
        value = fields.get(self.name)
        if value is None or (self.empty_is_missing and is_missing(value)):
            if self.is_required or (not self.is_nullable and self.name in fields):
                faults.add(self.name, Fault(f"The {self.name} field", "is required."))
            default: T | None = self.default
            return default
        return self.read_value(value, faults, limits)

    def read_value(self, value: Any, faults: FaultsFound, limits: Settings) -> T | None:
        """Return a value that is not missing; None if it is at fault."""
        try:
            return self.check(value, limits)
        except FieldFault as fault:
            faults.add(self.name, Fault(f"The {self.name}", f"{fault}"))
            return None

    def read_alone(self, fields: Mapping[str, Any], limits: Settings) -> T:
        """Read a request that has this field and no other.

        Raises:
            InvalidRequest: with every fault.
        """
        faults = FaultsFound()
        faults.add_unknown("field", fields, (self.name,), whole="body")
        value = self.read(fields, faults, limits)
        faults.raise_if_any()
        assert value is not None, "it is sent, and without a fault"
        return value

    def fault(self, value: Any, limits: Settings) -> Fault | None:
        """Say what is wrong with a value that is not missing; None when nothing is."""
        try:
            self.check(value, limits)
        except FieldFault as fault:
            return Fault(f"The {self.name}", f"{fault}")
        return None

    def described(self, limits: Settings) -> Schema:
        """Return the field as a property of a schema."""
        schema = dict(self.schema(limits))
        if not self.is_required and self.is_nullable:
            schema = {"anyOf": [schema, {"type": "null"}]}
        # In words: generated clients would take it that a field with `default` is always there.
        about = self.about if isinstance(self.about, str) else self.about(limits)
        has_default = not self.is_required and self.default not in (None, ...)
        schema["description"] = f"{about} Default: `{json.dumps(self.default)}`." if has_default else about
        return schema if self.example is ... else schema | {"examples": [self.example]}


class Table:
    """The fields that a request takes, in the order in which sentences name them, and the name of their schema."""

    def __init__(self, schema_name: str, about: str, *rows: Field[Any], **more: Any) -> None:
        """Make a table; `more` stands in the schema beside the fields."""
        self.schema_name = schema_name
        self.about = about
        self.rows = rows
        self.names = tuple(row.name for row in rows)
        self._more = more

    def new_faults(self, fields: Mapping[str, Any]) -> FaultsFound:
        """Begin to read: return the faults so far, which are the fields that are not known."""
        faults = FaultsFound()
        faults.add_unknown("field", fields, self.names, whole="body")
        return faults

    def read(self, fields: Mapping[str, Any], limits: Settings) -> dict[str, Any]:
        """Return the value of each field.

        Raises:
            InvalidRequest: with every fault of the body.
        """
        faults = self.new_faults(fields)
        values = {row.name: row.read(fields, faults, limits) for row in self.rows}
        faults.raise_if_any()
        return values

    def read_sent(self, fields: Mapping[str, Any], limits: Settings) -> dict[str, Any]:
        """Return the value of each field that is sent, of at least one.

        Raises:
            InvalidRequest: with every fault of the body.
        """
        faults = self.new_faults(fields)
        values = {row.name: row.read(fields, faults, limits) for row in self.rows if row.name in fields}
        if not values and faults.is_empty:
            faults.add("body", f"The body must have at least one of {', '.join(self.names)}.")
        faults.raise_if_any()
        return values

    def schema(self, limits: Settings) -> Schema:
        """Describe an object of these fields."""
        schema = {
            "type": "object",
            "description": self.about,
            "additionalProperties": False,
            "properties": {row.name: row.described(limits) for row in self.rows},
        }
        required = [row.name for row in self.rows if row.is_required]
        return schema | ({"required": required} if required else {}) | self._more


class Changes(Table):
    """What a body may change of what another makes: at least one of its fields, and what is left out stays.

    `null` says for each field that may be null what null means.
    """

    def __init__(self, schema_name: str, about: str, new: Table, null: Mapping[str, str]) -> None:
        rows = [
            # What is left out stays, so nothing has a default.
            replace(row, about=f"{str(row.about).removesuffix('.')}; null: {null[row.name]}.", default=...)
            if row.name in null
            else replace(row, is_required=False, is_nullable=False, default=...)
            for row in new.rows
        ]
        super().__init__(schema_name, about, *rows, minProperties=1)
        self._new = new

    def read(self, fields: Mapping[str, Any], limits: Settings) -> dict[str, Any]:
        """Return the value of each field that is sent, as `read_sent`."""
        return self._new.read_sent(fields, limits)


def reference_to(schema_name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{schema_name}"}
