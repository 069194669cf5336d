"""Members of organizations, their sessions, what they did, and the secrets that the processes of the service share."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, Integer, LargeBinary, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import TEXT, Base, created_at_column, id_column, moment_column, organization_id_column


def sender_of(member_id: str) -> str:
    """Return the SQL for a batch's `sender` from its `member_id`: a User, or null (without a look-up) if a key sent it.

    The names of a member never change.
    """
    return f"""
        CASE WHEN {member_id} IS NOT NULL
             THEN (SELECT json_build_object('id', m.id, 'first_name', m.first_name, 'last_name', m.last_name)
                   FROM members m WHERE m.id = {member_id}) END AS sender
    """


class Member(Base):
    """A person of one organization. The row of a removed member is kept for the record; it allows no sign-in.

    `link_hash` is the SHA-256 of the token of a link that is good until `link_expires_at`. `wrong_passwords` counts
    since `wrong_since`; until `locked_until` no password is accepted.
    """

    __tablename__ = "members"
    __table_args__ = (
        CheckConstraint("role IN ('viewer', 'sender', 'admin')", name="role_known"),
        CheckConstraint("octet_length(link_hash) = 32", name="link_hash_is_sha256"),
        CheckConstraint("(link_hash IS NULL) = (link_expires_at IS NULL)", name="link_with_an_end"),
        CheckConstraint("removed_at IS NULL OR password_hash IS NULL AND link_hash IS NULL", name="removed_has_no_way"),
        UniqueConstraint("link_hash"),
        Index("uq_members_email_key", "email_key", unique=True, postgresql_where=text("removed_at IS NULL")),
        Index(None, "organization_id"),
    )

    id: Mapped[int] = id_column()
    organization_id: Mapped[int] = organization_id_column()
    email: Mapped[str] = mapped_column(TEXT)
    email_key: Mapped[str] = mapped_column(TEXT)
    first_name: Mapped[str] = mapped_column(TEXT)
    last_name: Mapped[str] = mapped_column(TEXT)
    role: Mapped[str] = mapped_column(TEXT)
    password_hash: Mapped[str | None] = mapped_column(TEXT)
    link_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    link_expires_at: Mapped[datetime | None] = moment_column()
    wrong_passwords: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    wrong_since: Mapped[datetime | None] = moment_column()
    locked_until: Mapped[datetime | None] = moment_column()
    created_at: Mapped[datetime] = created_at_column()
    removed_at: Mapped[datetime | None] = moment_column()


class MemberSession(Base):
    """A member's session in one browser, found by the SHA-256 of a random token."""

    __tablename__ = "member_sessions"
    __table_args__ = (
        UniqueConstraint("hash"),
        CheckConstraint("octet_length(hash) = 32", name="hash_is_sha256"),
        Index(None, "member_id"),
        Index(None, "expires_at"),
    )

    id: Mapped[int] = id_column()
    member_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("members.id"))
    hash: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = created_at_column()
    expires_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True))
    revoked_at: Mapped[datetime | None] = moment_column()


class MemberAction(Base):
    """What a member did; without a member, what an operator did to the members.

    `subject_id` is the id of the batch, reversal, key, webhook or member concerned; `detail` adds what an id does not
    say.
    """

    __tablename__ = "member_actions"
    __table_args__ = (
        CheckConstraint("char_length(detail) <= 255", name="detail_length"),
        Index(None, "organization_id", "id"),
    )

    id: Mapped[int] = id_column()
    organization_id: Mapped[int] = organization_id_column()
    member_id: Mapped[int | None] = mapped_column(BigInteger, ForeignKey("members.id"))
    action: Mapped[str] = mapped_column(TEXT)
    subject_id: Mapped[int | None] = mapped_column(BigInteger)
    sandbox: Mapped[bool | None]
    detail: Mapped[str | None] = mapped_column(TEXT)
    created_at: Mapped[datetime] = created_at_column()


class ServiceSecret(Base):
    """A secret that all processes of the service share. The first process that needs it makes it."""

    __tablename__ = "service_secrets"
    __table_args__ = (CheckConstraint("octet_length(secret) = 32", name="secret_of_256_bits"),)

    name: Mapped[str] = mapped_column(TEXT, primary_key=True)
    secret: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = created_at_column()
