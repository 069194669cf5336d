"""The one way out: the envelope around every answer, the bodies in it, and the status of each error."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson
from flask import Response

from app.batches import ISSUED, BatchRow, TransactionRow
from app.errors import (
    BatchLost,
    DevelopmentKeyRequired,
    Faults,
    IdempotencyKeyReused,
    InvalidKey,
    InvalidRequest,
    MayNotIssue,
    NotFound,
    OutOfReach,
    PointsError,
)
from app.ledger.verify import Verdict
from app.organizations import OrganizationInMode
from app.timestamps import timestamp

INTERFACE_VERSION = "1.0"

# Every answer has them.
HEADERS = {"Cache-Control": "no-store, private", "Vary": "Accept, Authorization", "Via": "1.1 points"}

_STATUS_OF: dict[type[PointsError], int] = {
    InvalidRequest: 400,
    InvalidKey: 401,
    DevelopmentKeyRequired: 403,
    MayNotIssue: 403,
    NotFound: 404,
    IdempotencyKeyReused: 422,
    OutOfReach: 503,
    BatchLost: 503,
}
# Of these 503s.
_RETRY_AFTER_S = 2


def success(data: Mapping[str, Any], *, status: int = 200, **additional: object) -> Response:
    """Wrap the payload of a success; `additional` joins the version in `additional_data`."""
    document = {
        "success": True,
        "data": data,
        "errors": None,
        "additional_data": {"version": INTERFACE_VERSION, **additional},
    }
    return Response(orjson.dumps(document), status=status, content_type="application/json")


def failure_document(faults: Faults) -> bytes:
    """Render the envelope of an error."""
    return orjson.dumps({"success": False, "data": None, "errors": faults, "additional_data": None})


def failure(status: int, faults: Faults) -> Response:
    """Wrap the sentences of an error: field name to a non-empty array.

    A 400 is sent chunked, because the interface document gives it a `Transfer-Encoding`; a body
    handed over as an iterator has no length, which makes the server do so.
    """
    body = failure_document(faults)
    return Response(iter([body]) if status == 400 else body, status=status, content_type="application/json")


def failure_of(error: PointsError) -> Response:
    """Wrap an expected error under the status that its class has."""
    status = next(status for kind, status in _STATUS_OF.items() if isinstance(error, kind))
    response = failure(status, error.faults)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        response.headers["Retry-After"] = str(_RETRY_AFTER_S)
    return response


def verdict_body(verdict: Verdict) -> dict[str, Any]:
    """Verify result: `{"validated": bool, "error": string or null}`."""
    return {
        "validated": verdict.refusal is None,
        "error": None if verdict.refusal is None else verdict.refusal.sentence,
    }


def verdict_additions(verdict: Verdict) -> dict[str, Any]:
    """What verify adds for programs: the code of the refusal, and the points behind it."""
    return {
        "code": None if verdict.refusal is None else verdict.refusal.code,
        "required": verdict.required,
        "available": verdict.available,
        "affordable_recipients": verdict.affordable_recipients,
    }


def organization_body(organization: OrganizationInMode) -> dict[str, Any]:
    """Organization, with the balance of the key's mode."""
    return {
        "id": organization.id,
        "name": organization.name,
        "is_disabled": organization.is_disabled,
        "is_suspended": organization.is_suspended,
        "balance": organization.balance,
        "last_refill": organization.last_refill,
        "created_at": timestamp(organization.created_at),
    }


def issued_body(batch: BatchRow, transactions: Sequence[TransactionRow], *, as_issued: bool) -> dict[str, Any]:
    """Send result: the transactions, the sum of the debited ones, and the balance right after the batch.

    With `as_issued`, flags and recipients are those of the moment of issue, whatever was claimed
    since: a retry gets the answer that the first call got.
    """
    assert batch.status == ISSUED, "only an issued batch has a send result"
    assert batch.debited_count is not None, "an issued batch is complete (ck_batches_issued_when_complete)"
    return {
        "transactions": _transaction_bodies(batch, transactions, as_issued=as_issued),
        "amount": batch.debited_count * batch.amount,
        "current_balance": batch.current_balance,
    }


def batch_body(batch: BatchRow, transactions: Sequence[TransactionRow]) -> dict[str, Any]:
    """A batch as it is now; the keys of the send result are null until it is issued."""
    bodies = _transaction_bodies(batch, transactions, as_issued=False) if batch.status == ISSUED else None
    return _batch_body(batch, transactions=bodies)


def listed_batch_body(batch: BatchRow) -> dict[str, Any]:
    """A batch as a list shows it: as it is now, without its transactions."""
    return _batch_body(batch)


def _batch_body(batch: BatchRow, **more: object) -> dict[str, Any]:
    return {
        "batch_id": batch.id,
        "status": batch.status,
        "created_at": timestamp(batch.created_at),
        "issued_at": None if batch.issued_at is None else timestamp(batch.issued_at),
        **more,
        "amount": None if batch.debited_count is None else batch.debited_count * batch.amount,
        "current_balance": batch.current_balance,
    }


def listed_transaction_bodies(rows: Iterable[tuple[BatchRow, TransactionRow]]) -> list[dict[str, Any]]:
    """Transactions as they are now, each with the batch whose row it comes with; rows of one batch stand together."""
    bodies = []
    for _, group in groupby(rows, key=lambda row: row[0].id):
        of_batch = list(group)
        transactions = [transaction for _, transaction in of_batch]
        bodies += _transaction_bodies(of_batch[0][0], transactions, as_issued=False)
    return bodies


def _transaction_bodies(
    batch: BatchRow, transactions: Sequence[TransactionRow], *, as_issued: bool
) -> list[dict[str, Any]]:
    assert batch.issued_at is not None, "an issued batch is complete (ck_batches_issued_when_complete)"
    before, after = _organization_around_its_balance(batch)
    created_at = timestamp(batch.issued_at)
    bodies = []
    for row in transactions:
        held_then = as_issued and row.claimed
        credited = row.credited and not held_then
        bodies.append(
            {
                "id": row.id,
                "organization": orjson.Fragment(before + b"%d" % row.balance + after),
                "recipient": None
                if row.user_id is None or held_then
                else {"id": row.user_id, "first_name": row.first_name, "last_name": row.last_name},
                "email": row.email,
                "amount": batch.amount,
                "debited": row.debited,
                "credited": credited,
                "allocated": credited,  # By the contract's table the two are equal in every case.
                "sender": None,  # Null: sent through the API, the only way to send.
                "label": batch.label,
                "sandbox": batch.sandbox,
                "created_at": created_at,
            }
        )
    return bodies


def _organization_around_its_balance(batch: BatchRow) -> tuple[bytes, bytes]:
    """Render the organization once for the whole batch: what stands before its balance, and what after.

    An organization that issues is neither disabled nor suspended: the drain saw that under the lock.
    """
    before = {
        "id": batch.organization_id,
        "name": batch.organization_name,
        "is_disabled": False,
        "is_suspended": False,
    }
    after = {"last_refill": batch.last_refill, "created_at": timestamp(batch.organization_created_at)}
    return orjson.dumps(before)[:-1] + b',"balance":', b"," + orjson.dumps(after)[1:]
