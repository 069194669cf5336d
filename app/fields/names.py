"""A field that is an array of known names, such as the scopes of a key."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.fields.field import Field, FieldFault, Schema, kind
from app.settings import Settings
from app.values.validation_errors import FaultsFound, unknown_name


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownNames(Field[list[str]]):
    """An array of 1 to `most` names, each known and none twice. A bad name is reported by its place, `scopes.1`.

    `of` says what the array is of, `noun` what a name is, and `taker` who takes it. `known` are named in a fault.
    """

    of: str
    noun: str
    taker: str
    known: Sequence[str]
    is_known: Callable[[str], bool]
    entries: Schema
    most: int

    def check(self, value: Any, limits: Settings) -> list[str]:
        if isinstance(value, list) and 1 <= len(value) <= self.most:
            return value
        seen = f"an array of {len(value)}" if isinstance(value, list) else kind(value)
        raise FieldFault(f"must be an array of 1 to {self.most} {self.of}, but are {seen}.")

    def read_value(self, value: Any, faults: FaultsFound, limits: Settings) -> list[str] | None:
        entries: list[Any] | None = super().read_value(value, faults, limits)
        for place, entry in enumerate(entries or ()):
            key = f"{self.name}.{place}"
            if not isinstance(entry, str):
                faults.add_entry(key, f"The entry must be a string, but is {kind(entry)}.")
            elif not self.is_known(entry):
                faults.add_entry(key, unknown_name(self.noun, entry, self.known, taker=self.taker))
            elif entry in value[:place]:
                faults.add_entry(key, f"The entry is the same {self.noun} as {self.name}.{value.index(entry)}.")
        return entries

    def schema(self, limits: Settings) -> Schema:
        return {"type": "array", "items": self.entries, "minItems": 1, "maxItems": self.most, "uniqueItems": True}
