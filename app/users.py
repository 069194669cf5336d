"""Users: the accounts that points are credited to."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import orjson
from sqlalchemy import Connection, text

from app.errors import NotFound
from app.values.addresses import Address, parse
from app.values.texts import checked_name


@dataclass(frozen=True, kw_only=True, slots=True)
class NewUser:
    """A user to register, already checked; made by `new_user`."""

    address: Address
    first_name: str
    last_name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisteredUser:
    """A stored user; `balance` is the sum of all credits less the points taken back."""

    id: int
    email: str
    first_name: str
    last_name: str
    balance: int
    created_at: datetime


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
    """Insert those users whose address is not registered yet, and return their ids in any order.

    Rows are inserted in the order of the address, so two imports with the same addresses cannot deadlock.
    """
    rows = [
        {
            "email": user.address.text,
            "email_key": user.address.key,
            "first_name": user.first_name,
            "last_name": user.last_name,
        }
        for user in in_order(users)
    ]
    return list(connection.execute(_INSERT_NEW, {"users": orjson.dumps(rows).decode()}).scalars())


def in_order(users: Iterable[NewUser]) -> list[NewUser]:
    """Sort users in the order in which one transaction must insert them, also in several statements."""
    return sorted(users, key=lambda user: user.address.key)


# PostgreSQL reads thousands of rows from JSON five times as fast as from psycopg's arrays.
_INSERT_NEW = text("""
    INSERT INTO users (email, email_key, first_name, last_name)
    SELECT * FROM jsonb_to_recordset(CAST(:users AS jsonb))
        AS new (email text, email_key text, first_name text, last_name text)
    ON CONFLICT (email_key) WHERE sandbox_of IS NULL DO NOTHING
    RETURNING id
""")


def get(connection: Connection, email: str) -> RegisteredUser:
    """Return the user registered under an address.

    The balance is always exact: one statement reads both the folded balance and the credits not folded yet.

    Raises:
        InvalidAddress: `email` is not an e-mail address.
        NotFound: nobody is registered under it.
    """
    row = connection.execute(_GET, {"email_key": parse(email).key}).one_or_none()
    if row is None:
        raise NotFound("user", f"registered as {email.strip()}")
    return RegisteredUser(**row._asdict() | {"balance": int(row.balance)})


# A claim adds to the folded balance at once, so claimed transactions are not counted again.
_GET = text("""
    SELECT u.id, u.email, u.first_name, u.last_name, u.created_at,
           u.folded_balance + coalesce((SELECT sum(coalesce(t.points_left, t.amount, b.amount))
                                        FROM unfolded_batches f
                                        JOIN batches b ON b.id = f.batch_id
                                        JOIN transactions t ON t.batch_id = f.batch_id
                                        WHERE t.user_id = u.id AND t.credited AND t.claimed_at IS NULL), 0) AS balance
    FROM users u WHERE u.email_key = :email_key AND u.sandbox_of IS NULL
""")
