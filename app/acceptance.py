"""Acceptance: the one statement that knows who calls and writes their batches, for one send or for many at once."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection

from app.batches import BatchRow
from app.database import fetch_all
from app.errors import IdempotencyKeyReused, InvalidKey, PointsError
from app.organizations import may_not_issue


@dataclass(frozen=True, kw_only=True, slots=True)
class IssueRequest:
    """A valid request to issue points.

    `emails` are the addresses as sent (trimmed), in order; `email_keys` their normalised forms at the
    same places; `amount` is in points, for each recipient.
    """

    emails: Sequence[str]
    email_keys: Sequence[str]
    amount: int
    atomic: bool
    label: str | None

    def meaning(self) -> bytes:
        """Return the 32 bytes that are equal for two requests that mean the same, however they are written."""
        digest = hashlib.sha256(f"{self.amount} {self.atomic:d} ".encode())
        digest.update(b"-" if self.label is None else b"+" + self.label.encode())
        for key in self.email_keys:
            digest.update(b"\0" + key.encode())  # Neither a label nor an address can hold a NUL.
        return digest.digest()


class Send(NamedTuple):
    """One send as the front has read it: the hash of its API key, what it asks for, how it may be repeated."""

    key_hash: bytes
    request: IssueRequest
    idempotency_key: str | None


class Acceptance(NamedTuple):
    """What became of a send at the front: a batch of its own, or (`existed`) the one its key already names.

    `created_at` is the batch's. A PostgreSQL that has lost commits gives their ids away again, but not at that moment.
    """

    api_key_id: int
    key_use_is_old: bool
    organization_id: int
    batch_id: int
    status: str
    existed: bool
    created_at: datetime

    def is_of(self, batch: BatchRow) -> bool:
        """Tell whether this is the batch that was accepted, and not another one that has its id by now."""
        accepted = (self.batch_id, self.organization_id, self.created_at)
        return accepted == (batch.id, batch.organization_id, batch.created_at)


_ACCEPT = files("app").joinpath("acceptance.sql").read_bytes()


def accept(connection: Connection, sends: Sequence[Send]) -> list[Acceptance | PointsError | None]:
    """Write a queued batch for each send that may have one; return what became of each, at its place.

    Once the statement is committed, what it accepted cannot be lost. The errors are returned, because one
    caller's are no other's: `InvalidKey`, `IdempotencyKeyReused`, `MayNotIssue` (a batch that the idempotency
    key names is found before that is asked). None stands for a send whose idempotency key another took in the
    same moment: the batch that holds it is there now, so ask again.

    Raises:
        DBAPIError: nothing was accepted, or (`app.database.is_away`) that is not known.
    """
    outcomes: list[Acceptance | PointsError | None] = [InvalidKey()] * len(sends)
    for place, is_disabled, is_suspended, is_same, *accepted in fetch_all(connection, _ACCEPT, {"sends": _json(sends)}):
        acceptance = Acceptance(*accepted)
        if acceptance.existed:
            outcomes[place] = acceptance if is_same else IdempotencyKeyReused()
        else:
            refusal = may_not_issue(is_disabled=is_disabled, is_suspended=is_suspended)
            outcomes[place] = refusal or (acceptance if acceptance.batch_id else None)
    return outcomes


def _json(sends: Sequence[Send]) -> str:
    return orjson.dumps([_columns(place, *send) for place, send in enumerate(sends)]).decode()


def _columns(place: int, key_hash: bytes, request: IssueRequest, idempotency_key: str | None) -> dict[str, Any]:
    return {
        "place": place,
        "key_hash": key_hash.hex(),
        "amount": request.amount,
        "atomic": request.atomic,
        "label": request.label,
        "emails": request.emails,
        "email_keys": None if request.email_keys == request.emails else request.email_keys,
        "idempotency_key": idempotency_key,
        "idempotency_hash": None if idempotency_key is None else request.meaning().hex(),
    }
