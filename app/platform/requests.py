"""The requests about organizations and their keys: read from a mapping, with every fault in one answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.errors import Fault
from app.fields.bounds import BOUNDS, read_bounds
from app.fields.field import Table, is_missing
from app.fields.kinds import Boolean, Integer, KeyName, Name, OneOf, Reference
from app.organizations import APPROVAL_OF
from app.settings import INT64_MAX, Settings
from app.values.texts import KEY_NAME_LENGTH_MAX, REFERENCE_LENGTH_MAX
from app.values.timestamps import HOLD_DAYS_MAX

NAME = Name("name", "The name of the organization.", "Acme", is_required=True)
EXTERNAL_ID = Reference(
    "external_id",
    f"Your own id of the organization: 1 to {REFERENCE_LENGTH_MAX} visible characters, of one organization only.",
    "shop-12",
)
BALANCE = Integer(
    "balance", "The opening live balance, a refill.", 1_000, minimum=0, maximum=INT64_MAX, unit="points", default=0
)
SANDBOX_BALANCE = Integer(
    "sandbox_balance",
    lambda limits: f"The opening sandbox balance; by default {limits.sandbox_balance}. A reset restores it.",
    1_000_000,
    minimum=0,
    maximum=INT64_MAX,
    unit="points",
)
HELD_DAYS = Integer(
    "held_days",
    "For how many days points are held; null: for ever. It holds for what is issued from then on.",
    90,
    minimum=1,
    maximum=HOLD_DAYS_MAX,
    unit="days",
)
LOW_BALANCE = Integer(
    "low_balance",
    "Below which live balance an event says so; null: never.",
    100,
    minimum=1,
    maximum=INT64_MAX,
    unit="points",
)
APPROVAL_ABOVE = Integer(
    "approval_above",
    "Above how many points of one batch it awaits an approval; null: never. It holds for what is sent from then on.",
    100_000,
    minimum=0,
    maximum=INT64_MAX,
    unit="points",
)
APPROVAL_OF_SENDS = OneOf(
    "approval_of",
    "Whose sends await an approval: console (those of members) or all (those of keys too).",
    "console",
    words=APPROVAL_OF,
    is_required=True,
)
REQUIRES_SECOND_FACTOR = Boolean(
    "requires_second_factor",
    "True: members must set up a second factor before anything else in the console.",
    True,
    is_required=True,
)
IS_SUSPENDED = Boolean("is_suspended", "True: it cannot issue until it is resumed.", True, is_required=True)
IS_DISABLED = Boolean(
    "is_disabled", "True: it can neither issue nor take back until it is enabled.", False, is_required=True
)
NEW_ORGANIZATION = Table(
    "NewOrganization", "An organization to make.", NAME, EXTERNAL_ID, BALANCE, SANDBOX_BALANCE, HELD_DAYS, LOW_BALANCE
)
# How changes are read; what must not be null is required, if it is sent.
CHANGEABLE = Table(
    "",
    "",
    *(NAME, EXTERNAL_ID, HELD_DAYS, LOW_BALANCE, APPROVAL_ABOVE, APPROVAL_OF_SENDS, REQUIRES_SECOND_FACTOR),
    *(IS_SUSPENDED, IS_DISABLED),
)
CHANGED_ORGANIZATION = Table(
    "ChangedOrganization",
    "What to change of an organization; the rest stays as it is.",
    *(replace(row, is_required=False, is_nullable=not row.is_required) for row in CHANGEABLE.rows),
    minProperties=1,
)
AMOUNT = Integer(
    "amount",
    "The points to add; below 0, those to take off again, which needs a `reference`.",
    1_000,
    minimum=-INT64_MAX,
    maximum=INT64_MAX,
    unit="points",
    is_required=True,
)
OF_SANDBOX = Boolean("sandbox", "True: for the sandbox balance.", default=False, is_nullable=False)
REFERENCE = Reference(
    "reference",
    f"Your own name for the refill: 1 to {REFERENCE_LENGTH_MAX} visible characters, of one refill of the organization.",
    "invoice-7",
)
_BELOW_0: dict[str, Any] = {"properties": {"amount": {"exclusiveMaximum": 0}}, "required": ["amount"]}
NEW_REFILL = Table(
    "NewRefill",
    "Points for an organization, or a correction of a refill.",
    *(AMOUNT, OF_SANDBOX, REFERENCE),
    **{"not": {"properties": {"amount": {"const": 0}}, "required": ["amount"]}, "if": _BELOW_0},
    then={"properties": {"reference": {"type": "string"}}, "required": ["reference"]},
)
KEY_NAME = KeyName(
    "name", f"What people call the key: 1 to {KEY_NAME_LENGTH_MAX} visible characters; null: nothing.", "Till"
)
NEW_KEY = Table(
    "NewKey",
    "A key for an organization.",
    KEY_NAME,
    Boolean("sandbox", "True: a development key, for the sandbox.", default=False, is_nullable=False),
    *BOUNDS,
)


def read_new_organization(fields: Mapping[str, Any], limits: Settings) -> dict[str, Any]:
    """Return the values of a new organization.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    values = NEW_ORGANIZATION.read(fields, limits)
    if values["sandbox_balance"] is None:
        values["sandbox_balance"] = limits.sandbox_balance
    return values


def read_new_refill(fields: Mapping[str, Any], limits: Settings) -> dict[str, Any]:
    """Return the values of a refill.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    faults = NEW_REFILL.new_faults(fields)
    values = {row.name: row.read(fields, faults, limits) for row in NEW_REFILL.rows}
    if values["amount"] == 0:
        faults.add("amount", Fault("The amount", "must not be 0."))
    if (values["amount"] or 0) < 0 and is_missing(fields.get("reference")):
        faults.add("reference", Fault("The reference field", "is required when the amount is below 0."))
    faults.raise_if_any()
    return values


def read_new_key(fields: Mapping[str, Any], limits: Settings) -> dict[str, Any]:
    """Return the name, the mode and the bounds of a new key.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    faults = NEW_KEY.new_faults(fields)
    values = {row.name: row.read(fields, faults, limits) for row in NEW_KEY.rows if row not in BOUNDS}
    bounds = read_bounds(fields, faults, limits)
    faults.raise_if_any()
    return values | {"bounds": bounds}
