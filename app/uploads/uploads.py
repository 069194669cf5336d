"""Uploads: the lists that members check and send in the console, kept until some days after they are sent."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, text

from app.errors import NotFound, Refused
from app.members.sessions import SESSION_HOURS
from app.recipient_files.checking import Checked
from app.scope import Scope
from app.uploads import parts as upload_parts

# The open questions that a member must answer before a list can be checked.
SHEET, HIDDEN_ROWS, COLUMN, AMOUNT = "sheet", "hidden_rows", "column", "amount"

# An unsent list is deleted when nobody has opened it for this time. Of a sent list its row stays, so that it is
# recognized if sent again.
UNSENT_KEPT_DAYS = 7
SENT_KEPT_DAYS = 31
# Unsent lists of an organization; a further list deletes the one that was not opened for longest, unless it was within
# this time: somebody may stand on its page.
UNSENT_MAX = 50
IN_USE_HOURS = SESSION_HOURS
# Bad lines on the page of the check; the file has all of them.
BAD_LINES_SHOWN = 100


class Details(NamedTuple):
    """What a member says about a list: the name of a workbook's sheet, what becomes of its hidden rows, the columns
    (from 0) as `Chosen` tells, the points, the label.
    """

    sheet: str | None = None
    hidden_rows: str | None = None
    column: int | None = None
    amount_column: int | None = None
    reference_column: int | None = None
    label_column: int | None = None
    amount: int | None = None
    label: str | None = None


class Terms(NamedTuple):
    """How a list is issued: when (None: at once), and whether only if the balance pays everybody."""

    send_at: datetime | None
    atomic: bool


class UploadRow(NamedTuple):
    """A list without its content, its parts and its bad lines; its fields are columns of `uploads`."""

    id: int
    organization_id: int
    member_id: int
    sandbox: bool
    token: str
    name: str
    sheet: str | None
    hidden_rows: str | None
    column: int | None
    amount_column: int | None
    reference_column: int | None
    label_column: int | None
    amount: int | None
    label: str | None
    send_at: datetime | None
    atomic: bool
    question: str | None
    recipients: int | None
    points: int | None
    digest: str | None
    findings: dict[str, Any] | None
    created_at: datetime
    sent_at: datetime | None
    batch_ids: Sequence[int] | None
    sent_before: dict[str, Any] | None
    used_at: datetime

    @property
    def details(self) -> Details:
        return Details(*(getattr(self, field) for field in Details._fields))

    @property
    def scope(self) -> Scope:
        return Scope(self.organization_id, self.sandbox)


_COLUMNS = ", ".join(f'"{field}"' for field in UploadRow._fields)


def add(
    connection: Connection,
    scope: Scope,
    *,
    member_id: int,
    name: str,
    content: bytes,
    address_hashes: Iterable[int],
    token: str,
) -> int | None:
    """Store an unchecked list, and return its id; None: a list has this token. Call `judge` in the same transaction.

    Raises:
        Refused: there are `UNSENT_MAX` lists, and all are in use.
    """
    if connection.execute(_HAS_TOKEN, {"token": token}).scalar_one():  # The same form again makes no room.
        return None
    if (oldest := next_dropped(connection, scope)) is not None:
        if oldest.is_in_use:
            raise Refused(
                f"Your organization has {UNSENT_MAX} lists that are not sent, and each was opened within"
                f" {IN_USE_HOURS} hours: delete or send one of them first."
            )
        delete(connection, oldest.id)
    values = {"name": name, "content": content, "address_hashes": sorted(address_hashes)}
    parameters = {**scope._asdict(), "member_id": member_id, "token": token, **values}
    upload_id: int | None = connection.execute(_ADD, parameters).scalar_one_or_none()
    return upload_id


_HAS_TOKEN = text("SELECT EXISTS (SELECT FROM uploads WHERE token = :token)")


class Oldest(NamedTuple):
    """The unsent list that was not opened for longest, in either mode."""

    id: int
    name: str
    is_in_use: bool


def next_dropped(connection: Connection, scope: Scope) -> Oldest | None:
    """Return the list that a further one deletes, unless it is in use; None: there is room."""
    parameters = {"organization_id": scope.organization_id, "others": UNSENT_MAX - 1, "hours": IN_USE_HOURS}
    row = connection.execute(_NEXT_DROPPED, parameters).one_or_none()
    return None if row is None else Oldest(*row)


_NEXT_DROPPED = text("""
    SELECT id, name, used_at > clock_timestamp() - make_interval(hours => :hours)
    FROM uploads WHERE organization_id = :organization_id AND sent_at IS NULL
    ORDER BY used_at DESC, id DESC OFFSET :others LIMIT 1
""")


def use(connection: Connection, upload_id: int) -> None:
    """Note that somebody has opened an unsent list."""
    connection.execute(
        text("UPDATE uploads SET used_at = clock_timestamp() WHERE id = :id AND sent_at IS NULL"), {"id": upload_id}
    )


def delete(connection: Connection, upload_id: int) -> None:
    """Delete a list that is not sent."""
    connection.execute(text("DELETE FROM uploads WHERE id = :id AND sent_at IS NULL"), {"id": upload_id})


_ADD = text("""
    INSERT INTO uploads (organization_id, member_id, sandbox, token, name, content, address_hashes, question)
    VALUES (:organization_id, :member_id, :sandbox, :token, :name, :content, :address_hashes, 'column')
    ON CONFLICT (token) DO NOTHING RETURNING id
""")


def judge(
    connection: Connection,
    upload_id: int,
    details: Details,
    content_or_question: Checked | str,
    findings: dict[str, Any],
) -> str:
    """Store the result of a check: the recipients, or the open question. Return the upload's token.

    Args:
        content_or_question: the checked list, or the open question, such as `SHEET`.
        findings: what the page of the check shows besides the bad lines.
    """
    upload_parts.drop(connection, [upload_id])
    checked = content_or_question if isinstance(content_or_question, Checked) else None
    lines, rows = ((), ()) if checked is None else (checked.bad, checked.bad_rows)
    bad = [line._asdict() for line in lines]
    whole = [line | {"cells": row.cells, "fits": row.fault is None} for line, row in zip(bad, rows, strict=True)]
    parameters = {
        "id": upload_id,
        **details._asdict(),
        "question": content_or_question if checked is None else None,
        **{name: getattr(checked, name, None) for name in ("recipients", "points", "digest")},
        "findings": _json(findings | {"bad": len(bad), "bad_lines": bad[:BAD_LINES_SHOWN]}),
        "bad_lines": _json(whole),
    }
    token: str = connection.execute(_JUDGE, parameters).scalar_one()
    if checked is not None:
        upload_parts.add(connection, upload_id, checked.parts)
    return token


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


_JUDGE = text(f"""
    UPDATE uploads SET {", ".join(f'"{name}" = :{name}' for name in Details._fields)}, question = :question,
                       recipients = :recipients, points = :points, digest = :digest,
                       findings = CAST(:findings AS json), bad_lines = CAST(:bad_lines AS json)
    WHERE id = :id RETURNING token
""")


def settle(connection: Connection, upload_id: int, terms: Terms) -> None:
    """Keep how a locked, unsent list is to be issued."""
    connection.execute(
        text("UPDATE uploads SET send_at = :send_at, atomic = :atomic WHERE id = :id"),
        {"id": upload_id, **terms._asdict()},
    )


def get(connection: Connection, token: str, scope: Scope, *, lock: bool = False) -> UploadRow:
    """Return a list of an organization and mode.

    With `lock`, other transactions that would change or send it wait for the end of this transaction.

    Raises:
        NotFound: they have no such list, or it was deleted.
    """
    row = connection.execute(_LOCK if lock else _GET, {"token": token, **scope._asdict()}).one_or_none()
    if row is None:
        raise NotFound("list", token)
    return UploadRow._make(row)


_GET_SQL = f"""
    SELECT {_COLUMNS} FROM uploads
    WHERE token = :token AND organization_id = :organization_id AND sandbox = :sandbox
"""
_GET = text(_GET_SQL)
_LOCK = text(f"{_GET_SQL} FOR UPDATE")


def content_of(connection: Connection, upload_id: int) -> bytes:
    """Return a list as it was uploaded. Call it for unsent lists only."""
    return bytes(
        connection.execute(
            text("SELECT content FROM uploads WHERE id = :id AND content IS NOT NULL"), {"id": upload_id}
        ).scalar_one()
    )


def bad_lines_of(connection: Connection, upload_id: int) -> list[dict[str, Any]]:
    """Return all bad lines of a list, each with `line`, `email` and `reason`, its `cells`, and whether it `fits`."""
    return connection.execute(text("SELECT bad_lines FROM uploads WHERE id = :id"), {"id": upload_id}).scalar() or []


def mark_sent(
    connection: Connection, upload_id: int, batch_ids: Sequence[int], sent_before: Mapping[str, Any], *, by: int
) -> None:
    """Mark a list as sent, with the batches of its parts in order, and delete its content.

    Args:
        sent_before: what its sender saw of earlier sends, for whoever approves it.
        by: the member who has sent it, perhaps another than had given it.
    """
    parameters = {"id": upload_id, "batch_ids": list(batch_ids), "sent_before": _json(sent_before), "by": by}
    connection.execute(_MARK_SENT, parameters)


_MARK_SENT = text("""
    UPDATE uploads SET sent_at = clock_timestamp(), member_id = :by, batch_ids = :batch_ids, content = NULL,
                       sent_before = CAST(:sent_before AS json)
    WHERE id = :id
""")


def forget(connection: Connection, *, at_most: int) -> int:
    """Delete up to `at_most` lists past their time; of a sent list its row stays. Return how many there were."""
    parameters = {"unsent_days": UNSENT_KEPT_DAYS, "sent_days": SENT_KEPT_DAYS, "at_most": at_most}
    old = list(connection.execute(_OLD, parameters).scalars())
    upload_parts.drop(connection, old)
    connection.execute(text("DELETE FROM uploads WHERE id = ANY(:ids) AND sent_at IS NULL"), {"ids": old})
    connection.execute(_FORGET_LINES, {"ids": old})
    return len(old)


_FORGET_LINES = text("""
    UPDATE uploads SET findings = NULL, bad_lines = NULL, address_hashes = NULL WHERE id = ANY(:ids)
""")
_OLD = text("""
    SELECT id FROM uploads
    WHERE findings IS NOT NULL
      AND created_at < (SELECT clock_timestamp() - make_interval(days => :unsent_days))
      AND CASE WHEN sent_at IS NULL THEN used_at < (SELECT clock_timestamp() - make_interval(days => :unsent_days))
               ELSE created_at < (SELECT clock_timestamp() - make_interval(days => :sent_days)) END
    ORDER BY created_at LIMIT :at_most FOR UPDATE SKIP LOCKED
""")
