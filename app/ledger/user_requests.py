"""The requests that register and change users: read from a mapping, with every fault in one answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.errors import Faults, InvalidRequest
from app.fields.field import Table, kind, reference_to
from app.fields.kinds import EMAIL, FIRST_NAME, LAST_NAME, Array, Reference
from app.settings import Settings
from app.users import NewUser
from app.values.texts import REFERENCE_LENGTH_MAX

BULK_MAX = 1_000

EXTERNAL_ID = Reference(
    "external_id",
    f"Your own id of the user: 1 to {REFERENCE_LENGTH_MAX} visible characters, of one user only.",
    "customer-4711",
)
NEW_USER = Table("NewUser", "A user to register.", EMAIL, FIRST_NAME, LAST_NAME, EXTERNAL_ID)
CHANGED_USER = Table(
    "ChangedUser",
    "The fields of a user to change; the others stay as they are.",
    replace(EMAIL, about="The address by which the user is known from now on.", is_required=False, is_nullable=False),
    replace(FIRST_NAME, is_required=False, is_nullable=False),
    replace(LAST_NAME, about="The family name; null: none.", default=...),
    replace(EXTERNAL_ID, about=f"{EXTERNAL_ID.about} Null: none."),
    minProperties=1,
)
USERS = Array(
    "users",
    f"The users to register, 1 to {BULK_MAX}. An entry at fault is answered at its place, and keeps no other back.",
    [{"email": "ada@example.com", "first_name": "Ada", "last_name": "Lovelace"}],
    of="users",
    # Whatever an entry is, its fault is its own.
    entries={"anyOf": [reference_to(NEW_USER.schema_name), {}]},
    most=BULK_MAX,
    is_required=True,
)
NEW_USERS = Table("NewUsers", "Users to register.", USERS)


def read_new_user(fields: Mapping[str, Any], limits: Settings, table: Table = NEW_USER) -> NewUser:
    """Read a new user.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    values = table.read(fields, limits)
    return NewUser(address=values.pop("email"), **values)


def read_new_users(fields: Mapping[str, Any], limits: Settings) -> list[NewUser | Faults]:
    """Read users to register; of an entry at fault, the faults, each under its place: `users.3.email`.

    Raises:
        InvalidRequest: there are none, or too many, or they are no array.
    """
    entries = USERS.read_alone(fields, limits)
    return [_read_entry(entry, f"{USERS.name}.{place}", limits) for place, entry in enumerate(entries)]


def _read_entry(entry: Any, key: str, limits: Settings) -> NewUser | Faults:
    if not isinstance(entry, dict):
        return {key: [f"The entry must be an object, but is {kind(entry)}."]}
    try:
        return read_new_user(entry, limits)
    except InvalidRequest as invalid:
        return {key if name == "body" else f"{key}.{name}": texts for name, texts in invalid.faults.items()}


def read_changes(fields: Mapping[str, Any], limits: Settings) -> dict[str, Any]:
    """Return what to change of a user, by the names of `NewUser`.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    changes = NEW_USER.read_sent(fields, limits)
    return {"address" if name == "email" else name: value for name, value in changes.items()}
