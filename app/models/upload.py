"""Lists that members have uploaded in the console, and their recipients in parts."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import TEXT, Base, created_at_column, id_column, moment_column, organization_id_column


class Upload(Base):
    """One list as a member uploaded it, and what its check found.

    `token` names it in URLs and forms, and begins the idempotency keys of its batches. `content` is what was uploaded,
    until the list is sent. `column` is the chosen column of addresses (from 0). `question` is what the member must
    still answer before the list can be checked. `amount` null: each line has its own. `findings` are shown with the
    check; `bad_lines` holds all of them. Both are dropped with the parts after their time.
    """

    __tablename__ = "uploads"
    __table_args__ = (
        UniqueConstraint("token"),
        CheckConstraint("char_length(label) <= 255", name="label_length"),
        CheckConstraint("amount > 0", name="amount_positive"),
        CheckConstraint("question IN ('column', 'amount')", name="question_known"),
        CheckConstraint(
            "(question IS NULL) = (recipients IS NOT NULL) AND (question IS NULL) = (points IS NOT NULL)"
            " AND (question IS NULL) = (digest IS NOT NULL)",
            name="checked_unless_a_question",
        ),
        CheckConstraint("sent_at IS NULL OR (question IS NULL AND content IS NULL)", name="sent_once_checked"),
        # Finds out whether a list was sent before.
        Index(
            "ix_uploads_sent",
            "organization_id",
            "sandbox",
            "digest",
            "sent_at",
            postgresql_where=text("sent_at IS NOT NULL"),
        ),
        # For the upkeep: the oldest that are not sent, and those whose content is not dropped yet.
        Index("ix_uploads_unsent", "organization_id", "id", postgresql_where=text("sent_at IS NULL")),
        Index("ix_uploads_age", "created_at", postgresql_where=text("findings IS NOT NULL")),
    )

    id: Mapped[int] = id_column()
    organization_id: Mapped[int] = organization_id_column()
    member_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("members.id"))
    sandbox: Mapped[bool]
    token: Mapped[str] = mapped_column(TEXT)
    name: Mapped[str] = mapped_column(TEXT)
    content: Mapped[bytes | None] = mapped_column(LargeBinary)
    column: Mapped[int | None] = mapped_column(Integer)
    amount: Mapped[int | None] = mapped_column(BigInteger)
    label: Mapped[str | None] = mapped_column(TEXT)
    question: Mapped[str | None] = mapped_column(TEXT)
    recipients: Mapped[int | None] = mapped_column(Integer)
    points: Mapped[int | None] = mapped_column(BigInteger)
    digest: Mapped[str | None] = mapped_column(TEXT)
    findings: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    bad_lines: Mapped[list[Any] | None] = mapped_column(JSON)
    created_at: Mapped[datetime] = created_at_column()
    sent_at: Mapped[datetime | None] = moment_column()


class UploadPart(Base):
    """The recipients of one batch of a list, with the line of each; the batch is null until the list is sent.

    An array is null when no line has such a value.
    """

    __tablename__ = "upload_parts"
    __table_args__ = (
        PrimaryKeyConstraint("upload_id", "number"),
        CheckConstraint(
            "cardinality(emails) >= 1 AND cardinality(lines) = cardinality(emails)"
            " AND (amounts IS NULL OR cardinality(amounts) = cardinality(emails))"
            " AND (item_references IS NULL OR cardinality(item_references) = cardinality(emails))"
            " AND (labels IS NULL OR cardinality(labels) = cardinality(emails))",
            name="recipients_counted",
        ),
    )

    upload_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("uploads.id", ondelete="CASCADE"))
    number: Mapped[int] = mapped_column(Integer)
    lines: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    emails: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    amounts: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))
    item_references: Mapped[list[str | None] | None] = mapped_column(ARRAY(TEXT))
    labels: Mapped[list[str | None] | None] = mapped_column(ARRAY(TEXT))
    batch_id: Mapped[int | None] = mapped_column(BigInteger)
