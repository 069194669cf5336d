"""Acceptance: one statement that checks the API keys and writes the batches of one or many sends.

The sends of keys with bounds are accepted by a way of their own: the sends of all other keys pay nothing for them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, text

from app.batches import awaiting, key_limits
from app.batches.batch import DIGESTED, Batch
from app.batches.errors import ScheduledLimit
from app.batches.fields import KEPT
from app.batches.key_limits import KeyInUse
from app.batches.request import IssueRequest
from app.batches.schedule import SCHEDULED_MAX
from app.errors import IdempotencyKeyReused, InsufficientScope, InvalidKey, InvalidRequest, PointsError, Refused
from app.organizations import may_not_issue
from app.postgres import locks
from app.postgres.database import digest, fetch_all
from app.values.addresses import ERASED
from app.values.key_bounds import SEND
from app.values.timestamps import EARLIEST, LATEST, bounds_fault

# An idempotency key: 1 to 255 visible ASCII characters. The expression is valid in JSON Schema too.
IDEMPOTENCY_KEY = re.compile(r"^[!-~]{1,255}$")


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
    """The batch of an accepted send: a new batch, or (`existed`) that of its idempotency key.

    `created_at` is the batch's. A PostgreSQL that has lost commits uses their ids again, but never the same time.
    """

    api_key_id: int | None
    key_use_is_old: bool
    organization_id: int
    batch_id: int
    status: str
    existed: bool
    created_at: datetime

    def is_of(self, batch: Batch) -> bool:
        """Tell whether `batch` is what was accepted, and not a later batch with the same id."""
        accepted = (self.batch_id, self.organization_id, self.created_at)
        return accepted == (batch.id, batch.organization_id, batch.created_at)


# An error of a send concerns it alone. None: ask again, or (of a look) the send would make a batch.
Outcome = Acceptance | PointsError | None

_NOT_YET = (
    *("refusal", "cancelled_at", "issued_at", "organization_name", "last_refill"),
    *("approved_at", "rejected_at", "answered_by_member_id", "answered_by_key_id", "rejection_reason"),
)
_DIGEST = digest(
    DIGESTED, "fresh", idempotency_hash="decode(idempotency_hash, 'hex')", **dict.fromkeys(_NOT_YET, "NULL")
)
_STATEMENT = partial(
    files("app.batches").joinpath("accept.sql").read_text().format,
    digest=_DIGEST,
    needs_approval=awaiting.IS_NEEDED,
    kept=", ".join(KEPT),
    kept_as_text=", ".join(f"{name} text" for name in KEPT),
    kept_as_typed=", ".join(f"{name}::{kind}" for name, kind in KEPT.items()),
)
_ACCEPT = _STATEMENT(is_of_kind="NOT is_bounded", may_write="true").encode()
_IS_BOUNDED = "is_bounded AND (expires_at > clock_timestamp()) IS NOT FALSE"
_ACCEPT_BOUNDED = _STATEMENT(is_of_kind=_IS_BOUNDED, may_write="true").encode()
_LOOK = _STATEMENT(is_of_kind=_IS_BOUNDED, may_write="false").encode()


def accept(connection: Connection, sends: Sequence[Send]) -> list[Outcome]:
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


def _outcomes(connection: Connection, statement: bytes, sends: Sequence[Send]) -> list[Outcome]:
    if not sends:
        return []
    outcomes: list[Outcome] = [_stranger(send.sender) for send in sends]
    parameters = {"sends": _json(sends), "scheduled_max": SCHEDULED_MAX, "earliest": EARLIEST, "latest": LATEST}
    for index, is_disabled, is_suspended, is_same, now, has_room, *accepted in fetch_all(
        connection, statement, parameters
    ):
        acceptance = Acceptance(*accepted)
        refusal: PointsError | None
        if acceptance.existed:
            request = sends[index].request
            is_repeated = _is_what_is_left(connection, acceptance, request) if is_same is None else is_same
            refusal = None if is_repeated else IdempotencyKeyReused()
        else:
            refusal = _send_at_error(sends[index].request, now)
            refusal = refusal or may_not_issue(is_disabled=is_disabled, is_suspended=is_suspended)
            refusal = refusal or (None if has_room else ScheduledLimit(SCHEDULED_MAX))
        if refusal is not None:
            refusal.organization_id = acceptance.organization_id
        outcomes[index] = refusal or (acceptance if acceptance.batch_id else None)
    return outcomes


def _is_what_is_left(connection: Connection, acceptance: Acceptance, request: IssueRequest) -> bool:
    """Compare a request with a batch that an erasure has changed: any address is the same as an erased one.

    So nobody learns whether a guess of the address is right. A `send_at` may have been moved since: what counts is
    whether there is one.
    """
    key = {"id": acceptance.batch_id, "organization_id": acceptance.organization_id}
    left = connection.execute(_WHAT_IS_LEFT, key).mappings().one()
    is_scheduled, email_keys = request.send_at is not None, left["email_keys"]
    if left["is_scheduled"] != is_scheduled or len(email_keys) != len(request.email_keys):
        return False
    pairs = zip(email_keys, request.email_keys, strict=True)
    as_left = {
        **{name: left[name] for name in ("amount", "running_totals", "atomic", "label", "labels", "references")},
        "email_keys": [asked if ERASED.fullmatch(kept) else kept for kept, asked in pairs],
        "kept": {name: left[name] for name in KEPT if left[name] is not None},
    }
    return replace(request, **as_left).meaning() == request.meaning()


_WHAT_IS_LEFT = text(f"""
    SELECT coalesce(email_keys, emails) AS email_keys, amount, running_totals, atomic, label, labels,
           item_references AS "references", send_at IS NOT NULL AS is_scheduled, {", ".join(KEPT)}
    FROM batches WHERE id = :id AND organization_id = :organization_id
""")


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
        "rehearsed_unpaid": request.rehearsed_unpaid or None,
        **{
            name: orjson.dumps(value).decode() if isinstance(value, dict) else value
            for name, value in request.kept.items()
        },
        "idempotency_key": idempotency_key,
        "idempotency_hash": None if idempotency_key is None else request.meaning().hex(),
    }


class DayIsOver(Exception):
    """A batch would not count on the day that is locked, since that has just ended: roll back, accept again."""


def accept_within_limits(connection: Connection, sends: Sequence[Send]) -> list[Outcome]:
    """Write a batch for each permitted send of a key with bounds; return the outcomes in the order of the sends.

    They are those of `accept`, and also `InsufficientScope` and `KeyLimit`. A key without bounds is an `InvalidKey`.
    A send that is answered with an earlier batch takes nothing of its key's day.

    Raises:
        DayIsOver: nothing may be committed.
        DBAPIError: as there.
    """
    keys = key_limits.lock(connection, {_hash(send) for send in sends})
    outcomes: list[Outcome] = [_refusal(keys.get(_hash(send))) for send in sends]
    fresh = _decide(connection, sends, keys, outcomes)
    written = _outcomes(connection, _ACCEPT_BOUNDED, [sends[index] for index in fresh])
    for index, outcome in zip(fresh, written, strict=True):
        key = keys[_hash(sends[index])]
        if not isinstance(outcome, Acceptance) or outcome.existed:
            key.untake(sends[index].request.required)
        elif not key.counts_on(outcome.created_at.astimezone(UTC).date()):
            raise DayIsOver
        outcomes[index] = outcome
    key_limits.write(connection, keys.values())
    return outcomes


def _hash(send: Send) -> bytes:
    assert isinstance(send.sender, bytes), "a member has no bounds"
    return send.sender


def _refusal(key: KeyInUse | None) -> PointsError | None:
    if key is None:
        return InvalidKey()
    return None if key.bounds.allow((SEND,)) else key.of_organization(InsufficientScope(SEND))


def _decide(
    connection: Connection, sends: Sequence[Send], keys: Mapping[bytes, KeyInUse], outcomes: list[Outcome]
) -> list[int]:
    """Look which permitted sends would make a batch, and take its points; return those that may make it.

    The second of two sends with the same idempotency key keeps None: it is to ask again, and finds the first's batch.
    """
    permitted = [index for index, outcome in enumerate(outcomes) if outcome is None]
    looks = _outcomes(connection, _LOOK, [sends[index] for index in permitted])
    fresh: list[int] = []
    names: set[tuple[int, bool, str | int]] = set()
    for index, outcome in zip(permitted, looks, strict=True):
        send, key = sends[index], keys[_hash(sends[index])]
        name = (key.row.organization_id, key.row.sandbox, send.idempotency_key or index)
        if outcome is not None or name not in names:
            outcomes[index] = outcome or key.take(send.request.required)
            if outcomes[index] is None:
                names.add(name)
                fresh.append(index)
    return fresh
