"""Acceptance: one statement that checks the API keys and writes the batches of one or many sends."""

import re
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, text

from app.batches.errors import ScheduledLimit
from app.batches.read import DIGESTED, BatchRow
from app.batches.request import IssueRequest
from app.errors import IdempotencyKeyReused, InvalidKey, InvalidRequest, PointsError, Refused
from app.organizations import may_not_issue
from app.postgres import locks
from app.postgres.database import digest, fetch_all
from app.values.timestamps import EARLIEST, LATEST, bounds_fault

# An idempotency key: 1 to 255 visible ASCII characters. The expression is valid in JSON Schema too.
IDEMPOTENCY_KEY = re.compile(r"^[!-~]{1,255}$")


# The most scheduled batches of an organization in one mode.
SCHEDULED_MAX = 1_000


class SendingMember(NamedTuple):
    """The member who sends from the console, and the mode."""

    member_id: int
    sandbox: bool


class Send(NamedTuple):
    """One send as an edge has read it. The sender is the hash of an API key, or a member."""

    sender: bytes | SendingMember
    request: IssueRequest
    idempotency_key: str | None


class Acceptance(NamedTuple):
    """The batch of an accepted send: a new one, or (`existed`) the one that its idempotency key names.

    `created_at` is the batch's. A PostgreSQL that has lost commits uses their ids again, but never the same time.
    """

    api_key_id: int | None
    key_use_is_old: bool
    organization_id: int
    batch_id: int
    status: str
    existed: bool
    created_at: datetime

    def is_of(self, batch: BatchRow) -> bool:
        """Tell whether `batch` is the accepted one, and not a later one with the same id."""
        accepted = (self.batch_id, self.organization_id, self.created_at)
        return accepted == (batch.id, batch.organization_id, batch.created_at)


_NOT_YET = (
    *("refusal", "cancelled_at", "issued_at", "organization_name", "last_refill"),
    *("approved_at", "rejected_at", "answered_by_member_id", "answered_by_key_id", "rejection_reason"),
)
_DIGEST = digest(
    DIGESTED, "fresh", idempotency_hash="decode(idempotency_hash, 'hex')", **dict.fromkeys(_NOT_YET, "NULL")
)
_TEXT = files("app.batches").joinpath("accept.sql").read_text()
_ACCEPT = _TEXT.format(digest=_DIGEST, is_of_kind="NOT is_bounded", may_write="true").encode()
_IS_BOUNDED = "is_bounded AND (expires_at > clock_timestamp()) IS NOT FALSE"
_ACCEPT_BOUNDED = _TEXT.format(digest=_DIGEST, is_of_kind=_IS_BOUNDED, may_write="true").encode()
_LOOK = _TEXT.format(digest=_DIGEST, is_of_kind=_IS_BOUNDED, may_write="false").encode()


def accept(connection: Connection, sends: Sequence[Send]) -> list[Acceptance | PointsError | None]:
    """Write a batch for each permitted send of a key without bounds or of a member; return the outcomes in their order.

    Once the statement is committed, an accepted batch cannot be lost. Errors are returned and not raised, since each
    concerns one send: `InvalidKey` (for a member `Refused`), `IdempotencyKeyReused`, `InvalidRequest` (its `send_at` is
    out of bounds by PostgreSQL's clock), `MayNotIssue`, `ScheduledLimit`. If a batch already exists for the idempotency
    key, it is returned instead of the last three. None means that another send took the key at the same time: its batch
    exists now, so ask again.

    Raises:
        DBAPIError: nothing was accepted; if `app.postgres.database.is_away`, the outcome is unknown.
    """
    return _outcomes(connection, _ACCEPT, sends)


def accept_bounded(connection: Connection, sends: Sequence[Send]) -> list[Acceptance | PointsError | None]:
    """Write a batch for each permitted send of a key with bounds, as `accept`; its limits are not looked at."""
    return _outcomes(connection, _ACCEPT_BOUNDED, sends) if sends else []


def look(connection: Connection, sends: Sequence[Send]) -> list[Acceptance | PointsError | None]:
    """Return what `accept_bounded` would, but write nothing; None for a send that would make a batch."""
    return _outcomes(connection, _LOOK, sends) if sends else []


def _outcomes(connection: Connection, statement: bytes, sends: Sequence[Send]) -> list[Acceptance | PointsError | None]:
    outcomes: list[Acceptance | PointsError | None] = [_stranger(send.sender) for send in sends]
    parameters = {"sends": _json(sends), "scheduled_max": SCHEDULED_MAX, "earliest": EARLIEST, "latest": LATEST}
    for index, is_disabled, is_suspended, is_same, now, has_room, *accepted in fetch_all(
        connection, statement, parameters
    ):
        acceptance = Acceptance(*accepted)
        refusal: PointsError | None
        if acceptance.existed:
            refusal = None if is_same else IdempotencyKeyReused()
        else:
            refusal = _send_at_error(sends[index].request, now)
            refusal = refusal or may_not_issue(is_disabled=is_disabled, is_suspended=is_suspended)
            refusal = refusal or (None if has_room else ScheduledLimit(SCHEDULED_MAX))
        if refusal is not None:
            refusal.organization_id = acceptance.organization_id
        outcomes[index] = refusal or (acceptance if acceptance.batch_id else None)
    return outcomes


def _stranger(sender: bytes | SendingMember) -> PointsError:
    if isinstance(sender, bytes):
        return InvalidKey()
    return Refused("You may not send points: ask an admin for the role sender.")


def _send_at_error(request: IssueRequest, now: datetime) -> PointsError | None:
    sentence = None if request.send_at is None else bounds_fault(request.send_at, now=now)
    return None if sentence is None else InvalidRequest({"send_at": [sentence]})


def lock_schedules(connection: Connection, sends: Sequence[Send]) -> None:
    """Lock scheduling for the organizations of these sends, in both modes, until the transaction ends.

    Otherwise two fronts could count at the same time, without each other's new batches, and exceed the limit.
    """
    senders = [send.sender for send in sends if send.request.send_at]
    parameters = {
        "kind": locks.number(locks.Kind.SCHEDULES),
        "key_hashes": [sender for sender in senders if isinstance(sender, bytes)],
        "member_ids": [sender.member_id for sender in senders if not isinstance(sender, bytes)],
    }
    connection.execute(_LOCK_SCHEDULES, parameters)


# In the order of the organizations, so that two callers cannot deadlock.
_LOCK_SCHEDULES = text("""
    SELECT pg_advisory_xact_lock(:kind | organization_id)
    FROM (SELECT organization_id FROM api_keys WHERE hash = ANY(:key_hashes)
          UNION
          SELECT organization_id FROM members WHERE id = ANY(:member_ids)
          ORDER BY organization_id) o
""")


def _json(sends: Sequence[Send]) -> str:
    return orjson.dumps([_columns(index, *send) for index, send in enumerate(sends)]).decode()


def _columns(
    index: int, sender: bytes | SendingMember, request: IssueRequest, idempotency_key: str | None
) -> dict[str, Any]:
    who = {"key_hash": sender.hex()} if isinstance(sender, bytes) else sender._asdict()
    return {
        "index": index,
        **who,
        "amount": request.amount,
        "running_totals": request.running_totals,
        "atomic": request.atomic,
        "label": request.label,
        "emails": request.emails,
        "email_keys": None if request.email_keys == request.emails else request.email_keys,
        "labels": request.labels,
        "item_references": request.references,
        "send_at": request.send_at,
        "hold_days": request.hold_days,
        "rehearsed_unpaid": request.rehearsed_unpaid or None,
        "metadata": None if request.metadata is None else orjson.dumps(request.metadata).decode(),
        "idempotency_key": idempotency_key,
        "idempotency_hash": None if idempotency_key is None else request.meaning().hex(),
    }
