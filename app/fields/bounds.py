"""The fields that bound a new key. An empty one is a fault: a key must not get more because a form was empty."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from app.fields.field import Field, FieldFault, Schema, kind
from app.fields.kinds import Integer
from app.settings import INT64_MAX, Settings
from app.values.key_bounds import END_FORM, SCOPES, Bounds, in_order, parse_end
from app.values.validation_errors import FaultsFound, unknown_name


class Scopes(Field[list[str]]):
    """What a key may do."""

    SCHEMA: ClassVar[Schema] = {
        "type": "array",
        "items": {"type": "string", "pattern": f"^({'|'.join(SCOPES)})$"},
        "minItems": 1,
        "maxItems": len(SCOPES),
        "uniqueItems": True,
    }

    def check(self, value: Any, limits: Settings) -> list[str]:
        if isinstance(value, list) and 1 <= len(value) <= len(SCOPES):
            return value
        seen = f"an array of {len(value)}" if isinstance(value, list) else kind(value)
        raise FieldFault(f"must be an array of 1 to {len(SCOPES)} scopes, or null for all of them, but are {seen}.")

    def read_value(self, value: Any, faults: FaultsFound, limits: Settings) -> list[str] | None:
        entries: list[Any] | None = super().read_value(value, faults, limits)
        for place, one in enumerate(entries or ()):
            key = f"{self.name}.{place}"
            if not isinstance(one, str):
                faults.add_entry(key, f"The entry must be a string, but is {kind(one)}.")
            elif one not in SCOPES:
                faults.add_entry(key, unknown_name("scope", one, SCOPES, taker="a key"))
            elif one in value[:place]:
                faults.add_entry(key, f"The entry is the same scope as {self.name}.{value.index(one)}.")
        return entries


class End(Field[datetime]):
    """A day, whose end in UTC it is, or a time with its zone."""

    SCHEMA: ClassVar[Schema] = {"type": "string", "pattern": END_FORM}

    def check(self, value: Any, limits: Settings) -> datetime:
        if not isinstance(value, str):
            raise FieldFault(f"must be a string with a day or a time, but is {kind(value)}.")
        try:
            return parse_end(value)
        except ValueError as error:
            raise FieldFault(str(error)) from None


SCOPES_OF_KEY = Scopes("scopes", "What the key may do; null: everything.", ["read", "send"], takes_empty=True)
EXPIRES_AT = End(
    "expires_at",
    "Until when the key may call: a day, to its end in UTC, or a time with its zone; null: without end.",
    ...,
    takes_empty=True,
)
BATCH_LIMIT = Integer(
    "batch_limit",
    "The most points that the key may send in one batch; null: no limit.",
    10_000,
    minimum=1,
    maximum=INT64_MAX,
    unit="points",
    takes_empty=True,
)
DAILY_LIMIT = Integer(
    "daily_limit",
    "The most points that the key may send on one day in UTC; null: no limit.",
    100_000,
    minimum=1,
    maximum=INT64_MAX,
    unit="points",
    takes_empty=True,
)
BOUNDS = (SCOPES_OF_KEY, EXPIRES_AT, BATCH_LIMIT, DAILY_LIMIT)


def read_bounds(fields: Mapping[str, Any], faults: FaultsFound, limits: Settings) -> Bounds:
    """Return the bounds of a new key; what is at fault is added to `faults`, and is then None."""
    scopes, expires_at = SCOPES_OF_KEY.read(fields, faults, limits), EXPIRES_AT.read(fields, faults, limits)
    return Bounds(
        scopes=None if scopes is None else in_order(scopes),
        expires_at=expires_at,
        batch_limit=BATCH_LIMIT.read(fields, faults, limits),
        daily_limit=DAILY_LIMIT.read(fields, faults, limits),
    )
