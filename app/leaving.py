"""What goes on without a member who is removed: sends of theirs that wait, and keys that they made."""

from typing import NamedTuple

from sqlalchemy import Connection

from app import api_keys
from app.actions import log as actions
from app.api_keys import StoredKey
from app.batches import schedule
from app.batches.waiting import Waiting, waiting_of
from app.members.members import ListedMember, Member
from app.scope import MEMBER, Scope


class LeftBehind(NamedTuple):
    """What a member leaves behind; of the keys those that are good."""

    batches: list[Waiting]
    keys: list[StoredKey]

    @property
    def seen(self) -> str:
        """Return a text that differs when something else is left behind."""
        return " ".join(str(row.id) for of_kind in self for row in of_kind)


def left_by(connection: Connection, member: Member | ListedMember) -> LeftBehind:
    """Return what a member leaves behind, in both modes."""
    keys = [key for key in api_keys.find_all(connection, member.organization_id) if key.is_good]
    made = [key for key in keys if key.made_by and (key.made_by["type"], key.made_by["id"]) == (MEMBER, member.id)]
    return LeftBehind(waiting_of(connection, member.organization_id, member_id=member.id), made)


def end(connection: Connection, left: LeftBehind, member: Member, *, cancels: bool, revokes: bool) -> None:
    """Cancel the batches and revoke the keys that a member has left behind.

    Raises:
        BatchConflict: a batch was issued meanwhile.
        NotKnown: somebody holds the organization; ask again.
    """
    for batch in left.batches if cancels else ():
        scope = Scope(member.organization_id, batch.sandbox)
        schedule.cancel(connection, batch.id, scope)
        actions.record(connection, actions.CANCELLED, **scope._asdict(), subject_id=batch.id)
    for key in left.keys if revokes else ():
        api_keys.revoke(connection, key.id)
