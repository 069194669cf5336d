"""Who has sent batches or taken points back, by name: members, and the keys of programs."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from app import api_keys
from app.batches.read import BatchRow
from app.members import members
from app.reversals.read import ReversalRow


class Authors(NamedTuple):
    """The names of members and of keys, by their ids. A key may have none."""

    members: dict[int, str]
    keys: dict[int, str | None]


def authors_of(connection: Connection, rows: Sequence[BatchRow | ReversalRow]) -> Authors:
    """Return the names of those who have made these batches and reversals."""
    return Authors(
        members.names_of(connection, {row.member_id for row in rows if row.member_id is not None}),
        api_keys.names_of(connection, {row.api_key_id for row in rows if row.api_key_id is not None}),
    )
