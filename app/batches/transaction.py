"""A transaction of a batch: what callers see of it, and its row."""

from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel
from sqlalchemy import Connection

from app.noun_fields import Id, Points, Time, says, says_one_of
from app.organizations import in_mode
from app.postgres.database import fetch_all
from app.users import User
from app.values.ids import POSITIONS

STATES = CREDITED, HELD, UNPAID, REVERSED, RETURNED = "credited", "held", "unpaid", "reversed", "returned"


class Transaction(BaseModel):
    """One recipient of a batch."""

    id: Id = says("The id of the transaction.", 131_072)
    organization: in_mode.model = says(  # type: ignore[name-defined]
        "The issuing organization, with the balance right after this transaction."
    )
    recipient: User | None = says("The account with this address; null if there is none.")
    email: str = says("The address as it was sent, trimmed.", "ada@example.com")
    amount: Points = says("Points for this recipient.", 50)
    debited: bool = says(
        "The organization was debited. False: its balance was too low, or the user was erased before.", True
    )
    credited: bool = says("The recipient was credited.", True)
    allocated: bool = says("The same as `credited`. If `debited` is true and this is false, the points are held.", True)
    sender: User | None = says("The member who sent it from the console. Null: sent through this interface.", None)
    label: str | None = says("The label of its item, or of the batch; null if they have none.", None)
    reference: str | None = says("The caller's own id of its item; null if it has none.", None)
    reversed: Points = says("Points taken back so far.", 0)
    held_until: Time | None = says(
        "Until when its points are held, ISO 8601 in UTC, six decimals; null unless it is held and has an end.",
        None,
    )
    state: str = says_one_of(STATES, "Its state. Returned: it was held too long.", "credited")
    sandbox: bool = says("Issued in the sandbox, with a development key.", False)
    created_at: Time = says("When it was issued. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.482913Z")


class TransactionRow(NamedTuple):
    """A transaction with its user, if it has one; everything else that it shows is in its batch.

    `claimed`: it was held when it was issued, and credited later. `points_left` is None until points are taken back.
    `returned`: its points went back because they were held for too long. `amount`, `label` and `held_until` are None
    where they are the batch's.
    """

    id: int
    email: str
    balance: int
    debited: bool
    credited: bool
    claimed: bool
    amount: int | None
    label: str | None
    reference: str | None
    points_left: int | None
    held_until: datetime | None
    returned: bool
    user_id: int | None
    first_name: str | None
    last_name: str | None


# The fields of `TransactionRow`, in order.
TRANSACTION = """
    transaction_id(t.batch_id, t.position), t.email, t.balance, t.debited, t.credited, t.claimed_at IS NOT NULL,
    t.amount, t.label, t.reference, t.points_left, t.held_until, t.returned_at IS NOT NULL, u.id, u.first_name,
    u.last_name
"""


def transactions_of(
    connection: Connection, batch_id: int, *, organization_id: int, first: int = 0, at_most: int = POSITIONS
) -> list[TransactionRow]:
    """Return the transactions of a batch in request order: all, or up to `at_most` from position `first` on."""
    place = {"first": first, "last": first + at_most - 1}
    parameters = {"batch_id": batch_id, "organization_id": organization_id, **place}
    return list(map(TransactionRow._make, fetch_all(connection, _TRANSACTIONS, parameters, binary=True)))


_TRANSACTIONS = f"""
    SELECT {TRANSACTION}
    FROM transactions t LEFT JOIN users u ON u.id = t.user_id
    WHERE t.batch_id = %(batch_id)s AND t.organization_id = %(organization_id)s
      AND t.position BETWEEN %(first)s::int AND %(last)s::int
    ORDER BY t.position
""".encode()
