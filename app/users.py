"""Users: the accounts that points are credited to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import orjson
import psycopg
from pydantic import BaseModel
from sqlalchemy import Connection, Row, text
from sqlalchemy.exc import IntegrityError

from app.errors import NotFound, PointsError, UserConflict
from app.events import event_types, log
from app.noun import Noun
from app.noun_fields import Id, Points, Shown, says
from app.postgres.database import row_with_id
from app.values.addresses import Address, parse
from app.values.texts import checked_name


class UserErased(PointsError):
    status = 409
    field = "user"
    says = "The user was erased, and cannot be changed any more."


@dataclass(frozen=True, kw_only=True, slots=True)
class NewUser:
    """A user to register, already checked. `external_id` is what the platform calls it."""

    address: Address
    first_name: str
    last_name: str
    external_id: str | None = None


class User(BaseModel):
    """An account."""

    id: Id = says("The id of the account.", 7)
    first_name: str = says("The given name.", "Ada")
    last_name: str = says("The family name.", "Lovelace")


class RegisteredUser(NamedTuple):
    """A user as the platform sees it."""

    id: Annotated[Id, says("The id of the user.", 7)]
    email: Annotated[str, says("The address by which the user is known, trimmed.", "ada@example.com")]
    first_name: Annotated[str, says("The given name.", "Ada")]
    last_name: Annotated[str, says("The family name; empty if there is none.", "Lovelace")]
    external_id: Annotated[str | None, says("Your own id of the user; null if there is none.", "customer-4711")]
    balance: Annotated[Points, says("The user's points, exact at this moment.", 50), Shown(is_sum=True)]
    created_at: Annotated[
        datetime, says("When it was registered. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    ]


registered = Noun(RegisteredUser, "user", "users", schema="PlatformUser")


def new_user(email: str | Address, first_name: str, last_name: str) -> NewUser:
    """Check and trim the parts of a user. The last name may be empty: some people have one name.

    Raises:
        InvalidAddress: the text is not an e-mail address.
        Refused: the first name is blank, or a name is too long or not valid text.
    """
    return NewUser(
        address=parse(email) if isinstance(email, str) else email,
        first_name=checked_name("first_name", first_name),
        last_name=checked_name("last_name", last_name, may_be_blank=True),
    )


def insert_new(connection: Connection, users: Iterable[NewUser]) -> list[int]:
    """Insert those users whose address and external id are not registered yet, and return their ids in any order.

    The log of the platform tells of each.

    Rows are inserted in the order of the address, so two imports with the same addresses cannot deadlock.
    """
    rows = [
        {
            "email": user.address.text,
            "email_key": user.address.key,
            "first_name": user.first_name,
            "last_name": user.last_name,
            "external_id": user.external_id,
        }
        for user in in_order(users)
    ]
    return list(connection.execute(_INSERT_NEW, {"users": orjson.dumps(rows).decode()}).scalars())


def in_order(users: Iterable[NewUser]) -> list[NewUser]:
    """Sort users in the order in which one transaction must insert them, also in several statements."""
    return sorted(users, key=lambda user: user.address.key)


# PostgreSQL reads thousands of rows from JSON five times as fast as from psycopg's arrays.
_INSERT_NEW = text(f"""
    WITH new AS (
        INSERT INTO users (email, email_key, first_name, last_name, external_id)
        SELECT * FROM jsonb_to_recordset(CAST(:users AS jsonb))
            AS given (email text, email_key text, first_name text, last_name text, external_id text)
        ON CONFLICT DO NOTHING
        RETURNING id
    ), events AS ({log.OF_REGISTERED_USERS})
    SELECT id FROM new
""")


def get(connection: Connection, email: str) -> RegisteredUser:
    """Return the user registered under an address.

    Raises:
        InvalidAddress: `email` is not an e-mail address.
        NotFound: nobody is registered under it.
    """
    users = find_by_keys(connection, [parse(email).key])
    if not users:
        raise NotFound("user", f"registered as {email.strip()}")
    return next(iter(users.values()))


def get_by_id(connection: Connection, user_id: int) -> RegisteredUser:
    """Return the user with an id.

    Raises:
        NotFound: there is none.
    """
    return to_user(row_with_id(connection, _GET_BY_ID, {"id": user_id}, "user"))


def require(connection: Connection, user_id: int) -> None:
    """Refuse an id that is no live user's.

    Raises:
        NotFound: it is not.
    """
    row_with_id(connection, _REQUIRE, {"id": user_id}, "user")


_REQUIRE = text("SELECT id FROM users WHERE id = :id AND sandbox_of IS NULL")


def find_by_keys(connection: Connection, email_keys: Sequence[str]) -> dict[str, RegisteredUser]:
    """Return the users registered under these addresses, each by the normalised form of its own."""
    rows = connection.execute(_FIND_BY_KEYS, {"email_keys": list(email_keys)})
    return {row.email_key: to_user(row) for row in rows}


def find_external_ids(connection: Connection, new: Sequence[NewUser]) -> dict[str, str | None]:
    """Return the external ids of the users who have an address or an external id of these, by their addresses' keys."""
    parameters = {"keys": [user.address.key for user in new], "external_ids": [user.external_id for user in new]}
    return {row.email_key: row.external_id for row in connection.execute(_FIND_EXTERNAL_IDS, parameters)}


_FIND_EXTERNAL_IDS = text("""
    SELECT email_key, external_id FROM users WHERE email_key = ANY(:keys) AND sandbox_of IS NULL
    UNION ALL SELECT email_key, external_id FROM users WHERE external_id = ANY(:external_ids)
""")


def to_user(row: Row[Any]) -> RegisteredUser:
    """Make a user of a row of `SELECT_USERS`."""
    return RegisteredUser._make([*row[:5], int(row.balance), row.created_at])


# The balance is always exact: one statement reads the balances at all organizations and the credits not folded yet. A
# claim adds to the first at once, so claimed transactions are not counted again.
SELECT_USERS = """
    WITH matches AS MATERIALIZED (
        SELECT id, email, email_key, first_name, last_name, external_id, created_at FROM users
        WHERE sandbox_of IS NULL AND {condition}
    )
    SELECT f.id, f.email, f.first_name, f.last_name, f.external_id, f.email_key, f.created_at,
           coalesce((SELECT sum(points) FROM user_balances WHERE user_id = f.id), 0) + coalesce(c.points, 0)
               AS balance{more}
    FROM matches f
    LEFT JOIN (SELECT t.user_id, sum(coalesce(t.points_left, t.amount, b.amount)) AS points
               FROM unfolded_batches u
               JOIN batches b ON b.id = u.batch_id AND b.organization_id = u.organization_id
               JOIN transactions t ON t.batch_id = u.batch_id AND t.organization_id = u.organization_id
               WHERE t.user_id = ANY(ARRAY(SELECT id FROM matches)) AND t.credited AND t.claimed_at IS NULL
               GROUP BY t.user_id) c ON c.user_id = f.id
"""
_GET_BY_ID = text(SELECT_USERS.format(condition="id = :id", more=""))
_FIND_BY_KEYS = text(SELECT_USERS.format(condition="email_key = ANY(:email_keys)", more=""))


def change(connection: Connection, user_id: int, columns: Mapping[str, Any]) -> bool:
    """Set names, `external_id` or `address` of a user; return whether it is known by another address now.

    The row stays locked until the transaction ends. The log of the platform names the fields that are another now.

    Raises:
        NotFound: there is no such user.
        UserErased: it was erased.
        UserConflict: the address or the external id is that of another user.
    """
    before = row_with_id(connection, _LOCK, {"id": user_id}, "user")
    if before.email_key is None:
        raise UserErased
    values = dict(columns)
    address: Address | None = values.pop("address", None)
    if address is not None:
        values |= {"email": address.text, "email_key": address.key}
    fields = [name for name in _CHANGEABLE if name in values and values[name] != getattr(before, name)]
    if not fields:
        return False
    assignments = [f"{name} = :{name}" for name in values] + ["address_changed_at = clock_timestamp()"] * bool(address)
    try:
        with connection.begin_nested():
            statement = text(f"UPDATE users SET {', '.join(assignments)} WHERE id = :id")
            connection.execute(statement, values | {"id": user_id})
    except IntegrityError as error:
        constraint = error.orig.diag.constraint_name if isinstance(error.orig, psycopg.Error) else None
        field = "external_id" if constraint == "uq_users_external_id" else "email"
        raise UserConflict(f"The {field} is that of another user.", field=field) from None
    log.write_of_user(connection, event_types.USER_CHANGED, user_id, fields=fields)
    if address is None or address.key == before.email_key:
        return False
    connection.execute(_KEEP_FORMER, {"id": user_id, "email_key": before.email_key})
    return True


_CHANGEABLE = ("email", "first_name", "last_name", "external_id")
_LOCK = text(f"""
    SELECT email_key, {", ".join(_CHANGEABLE)} FROM users WHERE id = :id AND sandbox_of IS NULL FOR NO KEY UPDATE
""")
_KEEP_FORMER = text("""
    INSERT INTO former_addresses (user_id, email_key, last_batch_id)
    SELECT :id, :email_key, last_value FROM batches_id_seq ON CONFLICT DO NOTHING
""")
