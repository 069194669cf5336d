"""Registering and changing users, as requests ask for it: what is held for their address is claimed at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection

from app import users
from app.actions import log as actions
from app.errors import Faults, InvalidRequest, UserConflict
from app.fields.field import Table, kind, reference_to
from app.fields.kinds import EMAIL, FIRST_NAME, LAST_NAME, Array, Reference
from app.ledger.claim import NOTHING, Claimed, Registered, claim_all, claimed_at_registration, register
from app.ledger.held_list import exclude_reversals, holders_of
from app.postgres import locks
from app.postgres.database import transaction
from app.scope import Author
from app.settings import Settings
from app.users import NewUser, RegisteredUser, in_order
from app.values.addresses import Address
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


CREATED, EXISTS, CONFLICT = "created", "exists", "conflict"
OUTCOMES = (CREATED, EXISTS, CONFLICT)


class Registration(NamedTuple):
    """A user, whether it was registered just now, and what its registration, or the change, has claimed."""

    user: RegisteredUser
    is_new: bool
    claimed: Claimed


def register_user(connection: Connection, new: NewUser) -> Registration:
    """Register a user and claim what is held for the address; do nothing if it is registered with the same values.

    What the registration has claimed is told again.

    Raises:
        UserConflict: the address is registered with other names or another external id, or that is another user's.
    """
    user_ids = register(connection, [new]).user_ids
    known = users.find_by_keys(connection, [new.address.key]).get(new.address.key)
    if not user_ids and (conflict := _conflict(new, known)) is not None:
        raise conflict
    assert known is not None, "it is registered, just now or before"
    if user_ids:
        actions.record(connection, actions.USER_REGISTERED, subject_id=known.id)
    return Registration(known, bool(user_ids), claimed_at_registration(connection, known.id))


def _conflict(new: NewUser, known: RegisteredUser | None) -> UserConflict | None:
    """Return what keeps a user from being registered, or None; `known` is the user who has the address."""
    if known is None:
        return UserConflict("The external_id is that of another user.", field="external_id")
    if (known.first_name, known.last_name) != (new.first_name, new.last_name):
        return UserConflict(f"The email is that of user {known.id}, who has other names.")
    if known.external_id != new.external_id:
        has = "none" if known.external_id is None else "another"
        sentence = f"The email is that of user {known.id}, whose external_id is {has}."
        return UserConflict(sentence, field="external_id")
    return None


def change_user(connection: Connection, user_id: int, changes: Mapping[str, Any]) -> Registration:
    """Change names, external id or address of a user, and claim what is held for a new address.

    Points that the user has stay, and so do the transactions that have the address from before.

    Args:
        changes: by the names of `NewUser`.

    Raises:
        NotFound: there is no such user.
        UserConflict: the address or the external id is that of another user.
    """
    address: Address | None = changes.get("address")
    holders = [] if address is None else holders_of(connection, [address.key])
    exclude_reversals(connection, holders)
    if not changes.keys().isdisjoint(("address", "external_id")):
        locks.wait_for(connection, locks.Kind.IDENTITIES)
    is_known_anew = users.change(connection, user_id, changes)
    claimed = claim_all(connection, [user_id], holders) if is_known_anew else NOTHING
    changed = ", ".join("email" if name == "address" else name for name in changes)
    actions.record(connection, actions.USER_CHANGED, subject_id=user_id, detail=changed)
    return Registration(users.get_by_id(connection, user_id), is_new=False, claimed=claimed)


def register_in_steps(new: Sequence[NewUser], *, by: Author | None = None) -> Iterator[Registered]:
    """Register users and claim what is held for them: in one transaction, or in several if much is held.

    Each user is registered and credited in the same transaction. Who is registered already stays unchanged.

    Args:
        by: who does it.

    Yields:
        what each transaction has done, once it is committed; the users are looked at in the order of their address.
    """
    left = in_order(new)
    while left:
        with transaction(by=by) as connection:
            step = register(connection, left)
            if step.user_ids:
                actions.record(connection, actions.USERS_REGISTERED, detail=str(len(step.user_ids)))
        yield step
        left = left[step.looked_at :]


class Outcome(NamedTuple):
    """What became of a user among many to register, by `OUTCOMES`; a conflict has no user, but faults."""

    status: str
    user: RegisteredUser | None
    faults: Faults | None


def register_many(entries: Sequence[NewUser | Faults], *, by: Author | None = None) -> list[Outcome]:
    """Register users by `register_in_steps`, and return the outcome of each entry, in order.

    Args:
        entries: the users; an entry at fault has its faults instead, and is registered as little as a conflict.
        by: who does it.
    """
    to_register = firsts(entries)
    created = {user_id for step in register_in_steps(list(to_register.values()), by=by) for user_id in step.user_ids}
    known = _known([entry for entry in entries if isinstance(entry, NewUser)])
    outcomes = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, NewUser):
            outcomes.append(Outcome(CONFLICT, None, entry))
            continue
        user = known.get(entry.address.key)
        if (conflict := _conflict(entry, user)) is not None:
            faults = {f"users.{place}.{conflict.field}": [conflict.sentence]}
            outcomes.append(Outcome(CONFLICT, None, faults))
        else:
            is_new = user is not None and user.id in created and place in to_register
            outcomes.append(Outcome(CREATED if is_new else EXISTS, user, None))
    return outcomes


def conflicts_of(new: Sequence[NewUser]) -> list[UserConflict | None]:
    """Return, for each of some users who were to be registered, what has kept it from that, or None."""
    known = _known(new)
    return [_conflict(user, known.get(user.address.key)) for user in new]


def _known(new: Sequence[NewUser]) -> dict[str, RegisteredUser]:
    """Return the users with these addresses, by the keys of the addresses."""
    with transaction() as connection:
        return users.find_by_keys(connection, [user.address.key for user in new])


def firsts(entries: Sequence[NewUser | Faults]) -> dict[int, NewUser]:
    """Return the entries to register by their places: of two with the same address or external id, the first.

    One whose address or external id is a user's already keeps no later one back.
    """
    by_place: dict[int, NewUser] = {}
    addresses: set[str] = set()
    external_ids: set[str] = set()
    with transaction() as connection:
        known = users.find_external_ids(connection, [entry for entry in entries if isinstance(entry, NewUser)])
    taken = set(known.values()) - {None}
    for place, entry in enumerate(entries):
        if not isinstance(entry, NewUser) or entry.address.key in addresses or entry.external_id in external_ids:
            continue
        by_place[place] = entry
        if entry.address.key not in known and entry.external_id not in taken:
            addresses.add(entry.address.key)
            if entry.external_id is not None:
                external_ids.add(entry.external_id)
    return by_place
