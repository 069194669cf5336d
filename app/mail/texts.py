"""What a mail says: numbers, times, names of members and links. No address of a recipient, no label, no reason, no key.

Labels and reasons are free text, which may hold an address; the page that a link leads to shows them. A mail tells how
things are when it is sent: what was decided meanwhile awaits nobody.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app import organizations
from app.batches.batch import AWAITING_APPROVAL, REFUSED, REJECTED, approval_of, points_of, sender_of
from app.encryption import SecretsKeyMissing, SecretUnreadable, decrypted
from app.events.event_types import ANSWERED, AWAITING, LATER, LINK, LOW_BALANCE
from app.mail.due import Due
from app.members.links import LINK_HOURS, link_to
from app.members.members import full_name
from app.organizations import WholeOrganization
from app.postgres.database import row_to
from app.values.key_hashes import hash_token
from app.values.numbers import counted, points
from app.values.zones import moment_in

_SHOWN_MAX = 10


class Mail(NamedTuple):
    """A mail to a member. `secret` is the part of its text that no log shows."""

    member_id: int
    to: str
    subject: str
    text: str
    secret: str | None = None


class _Reader(NamedTuple):
    email: str
    first_name: str
    time_zone: str
    role: str
    mails_off: list[str]
    has_password: bool
    link_hash: bytes | None


class _Batch(NamedTuple):
    id: int
    status: str
    recipient_count: int
    points: int
    debited_count: int | None
    debited_amount: int | None
    created_at: datetime
    sender: Mapping[str, Any] | None
    approval: Mapping[str, Any] | None

    @property
    def content(self) -> str:
        return f"{counted(self.points, 'point')} to {counted(self.recipient_count, 'recipient')}"


# The title, and the lines.
_Content = tuple[str, ...]


def write(connection: Connection, due: Due, *, url: str) -> Mail | None:
    """Write the mail for what is due, with links that begin with `url`; None: there is nothing to tell any more."""
    row = connection.execute(_READER, {"id": due.member_id}).one_or_none()
    if row is None or due.kind in (reader := row_to(_Reader, row)).mails_off:
        return None
    organization = organizations.get_whole(connection, due.organization_id)
    name = " ".join(organization.name.split())  # A header is one line.
    pages = f"{url}/console/{'sandbox' if due.sandbox else 'live'}"
    secret = None
    if due.kind == LINK:
        secret = _working(due.links, reader)
        content = None if secret is None else _link(secret, reader, name, url)
    elif due.kind == LOW_BALANCE:
        content = _low(organization, pages)
    else:
        content = _about(_KINDS[due.kind], _batches(connection, due), reader.time_zone, pages)
    if content is None:
        return None
    title, *lines = content
    lines += ["This is the sandbox: nothing is real."] if due.sandbox else []
    lines.append(f"You get this as a member of {name}. Choose what you get by mail:\n{pages}/account#mail\n")
    subject = f"{'[Sandbox] ' if due.sandbox else ''}{name}: {title}"
    return Mail(due.member_id, reader.email, subject, "\n\n".join([f"Hello {reader.first_name},", *lines]), secret)


_READER = text("""
    SELECT email, first_name, time_zone, role, mails_off, password_hash IS NOT NULL AS has_password,
           CASE WHEN link_expires_at > clock_timestamp() THEN link_hash END AS link_hash
    FROM members WHERE id = :id AND removed_at IS NULL
""")


def _working(links: Sequence[str], reader: _Reader) -> str | None:
    """Return the token of the link that still works; None: it was used, or a later one has a mail of its own."""
    for link in links:
        try:
            token = decrypted(link)
        except (SecretsKeyMissing, SecretUnreadable):
            continue
        if hash_token(token) == reader.link_hash:
            return token
    return None


def _link(token: str, reader: _Reader, name: str, url: str) -> _Content:
    role = f"{'an' if reader.role[0] == 'a' else 'a'} {reader.role}"
    title, about = "choose your password", f"Somebody made a link with which you choose another password at {name}"
    if not reader.has_password:
        title, about = (
            "you are invited",
            f"You are invited to the console of {name}, as {role}. Choose a password there",
        )
    return title, f"{about}. The link works once, and for {LINK_HOURS} hours.\n{link_to(token, url=url)}"


def _low(organization: WholeOrganization, pages: str) -> _Content | None:
    low, balance = organization.low_balance, organization.balance
    if low is None or balance >= low:
        return None
    return "the balance is low", f"The balance is {counted(balance, 'point')}: below {points(low)}.\n{pages}"


def _batches(connection: Connection, due: Due) -> list[_Batch]:
    parameters = {"ids": due.batch_ids, "organization_id": due.organization_id}
    return [row_to(_Batch, row) for row in connection.execute(_BATCHES, parameters)]


_BATCHES = text(f"""
    SELECT id, status, recipient_count, debited_count, debited_amount, created_at,
           {points_of()} AS points,
           {sender_of("member_id")} AS sender, {approval_of()} AS approval
    FROM batches WHERE id = ANY(:ids) AND organization_id = :organization_id ORDER BY created_at, id
""")


def _about(kind: "_Kind", batches: Sequence[_Batch], zone: str, pages: str) -> _Content | None:
    """Return the content of a mail about batches: the oldest one by one, and how many more there are."""
    told = [(batch, *words) for batch in batches if (words := kind.words(batch, zone)) is not None]
    if not told:
        return None
    lines = [f"Batch {batch.id} {does}: {more}.\n{pages}/batches/{batch.id}" for batch, does, more in told[:_SHOWN_MAX]]
    lines += [f"And {points(len(told) - _SHOWN_MAX)} more."] if len(told) > _SHOWN_MAX else []
    lines.append(f"{kind.all_of_them}:\n{pages}/{kind.page}")
    first, does, _ = told[0]
    title = f"batch {first.id} {does}" if len(told) == 1 else f"{counted(len(told), 'batch', 'es')} {kind.several_do}"
    return title, *lines


def _awaiting(batch: _Batch, zone: str) -> tuple[str, str] | None:
    if batch.status != AWAITING_APPROVAL:
        return None
    return (
        "awaits your approval",
        f"{batch.content}, sent by {_who(batch.sender)} at {moment_in(zone, batch.created_at)}",
    )


def _answered(batch: _Batch, _zone: str) -> tuple[str, str] | None:
    if batch.approval is None:  # It was moved, and awaits another approval.
        return None
    by = batch.approval["by"]
    if batch.status != REJECTED:
        return "was approved", f"{batch.content}, by {_who(by)}"
    nobody = by is None and batch.approval["api_key_id"] is None
    return "was rejected", f"{batch.content}, {'because nobody answered in time' if nobody else f'by {_who(by)}'}"


def _later(batch: _Batch, _zone: str) -> tuple[str, str] | None:
    if batch.status == REFUSED:
        return "was refused", f"{batch.content}; nobody was debited, for the organization may not issue"
    if batch.debited_count is None or batch.debited_amount is None:
        return None
    unpaid = batch.recipient_count - batch.debited_count
    paid = f"{counted(batch.debited_amount, 'point')} to {counted(batch.debited_count, 'recipient')}"
    return "was issued", f"{paid}; {counted(unpaid, 'recipient')} could not be paid" if unpaid else paid


def _who(member: Mapping[str, Any] | None) -> str:
    return "a program" if member is None else full_name(member["first_name"], member["last_name"])


class _Kind(NamedTuple):
    """A kind of mail about batches: what each does and more of it (None: nothing to tell), and what several do."""

    words: Callable[[_Batch, str], tuple[str, str] | None]
    several_do: str
    all_of_them: str
    page: str


_KINDS: Mapping[str, _Kind] = {
    AWAITING: _Kind(_awaiting, "await your approval", "All that awaits one", "approvals"),
    ANSWERED: _Kind(_answered, "were approved or rejected", "All batches", "batches"),
    LATER: _Kind(_later, "were issued or refused", "All batches", "batches"),
}
