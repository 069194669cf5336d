"""Which mails a member wants, and the link that waits to be mailed. `app/mail` sends them."""

from collections.abc import Collection

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.encryption import encrypted
from app.events.event_types import LINK, MAIL_KINDS
from app.members.members import Member, record
from app.settings import settings


def wanted_by(connection: Connection, member_id: int) -> list[str]:
    """Return the kinds of mail that a member wants: all, unless the member has turned some off."""
    off: list[str] = connection.execute(_OFF, {"id": member_id}).scalar_one()
    return [kind for kind in MAIL_KINDS if kind not in off]


_OFF = text("SELECT mails_off FROM members WHERE id = :id")


def choose(connection: Connection, member: Member, kinds: Collection[str]) -> None:
    """Keep the kinds of mail that a locked member wants."""
    off = [kind for kind in MAIL_KINDS if kind not in kinds]
    if connection.execute(_CHOOSE, {"id": member.id, "off": off}).rowcount:
        record(connection, actions.MAIL_CHOSEN, member, by=member.id)


_CHOOSE = text("UPDATE members SET mails_off = :off WHERE id = :id AND mails_off <> CAST(:off AS text[])")


def put_link(connection: Connection, member: Member, token: str) -> None:
    """Put down the token of a link for its mail, if the service sends any: encrypted, and gone once that is sent."""
    if settings().has_mail and settings().secrets_key:
        values = {"id": member.id, "organization_id": member.organization_id, "link": encrypted(token)}
        connection.execute(_PUT_LINK, values)


_PUT_LINK = text(f"""
    INSERT INTO mails (organization_id, member_id, sandbox, kind, state, link)
    VALUES (:organization_id, :id, false, '{LINK}', 'waiting', :link)
""")
