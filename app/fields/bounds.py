"""The fields that bound a new key."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from app.fields.field import Field, FieldFault, Schema, kind
from app.fields.kinds import Integer
from app.fields.names import KnownNames
from app.settings import INT64_MAX, Settings
from app.values.key_bounds import END_FORM, SCOPES, Bounds, in_order, parse_end
from app.values.validation_errors import FaultsFound


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


SCOPES_OF_KEY = KnownNames(
    "scopes",
    "What the key may do; null: everything.",
    ["read", "send"],
    of="scopes, or null for all of them",
    noun="scope",
    taker="a key",
    known=SCOPES,
    is_known=SCOPES.__contains__,
    entries={"type": "string", "pattern": f"^({'|'.join(SCOPES)})$"},
    most=len(SCOPES),
)
EXPIRES_AT = End(
    "expires_at",
    "Until when the key may call: a day, to its end in UTC, or a time with its zone; null: without end.",
    ...,
)
_limit = partial(Integer, minimum=1, maximum=INT64_MAX, unit="points")
BATCH_LIMIT = _limit("batch_limit", "The most points that the key may send in one batch; null: no limit.", 10_000)
DAILY_LIMIT = _limit("daily_limit", "The most points that the key may send on one day in UTC; null: no limit.", 100_000)
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
