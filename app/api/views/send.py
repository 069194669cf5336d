"""`POST /v1/points/send`: accept a batch, hand it to the workers, and answer from the rows that they commit."""

from dataclasses import replace
from functools import partial

from flask import Blueprint, Response, request
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from app import logs
from app.api.answers import envelope
from app.api.auth import caller, hash_of_key, is_development_key
from app.api.requests.body import read_json
from app.api.requests.query import refuse_parameters
from app.api.requests.send_headers import end_connection, idempotency_key, rehearsal, wish
from app.api.sending.send_path import send_path
from app.api.sending.waiting import Rows
from app.batches import payloads
from app.batches.accept import Acceptance, Send
from app.batches.batch import AWAITING_APPROVAL, CANCELLED, ISSUED, QUEUED, REFUSED, REJECTED, SCHEDULED, find_accepted
from app.batches.errors import BatchCancelled, BatchLost, BatchRejected
from app.batches.fields import SEND
from app.batches.request import IssueRequest, read_issue_request
from app.batches.transaction import transactions_of
from app.batches.verify import ACCEPTED, INSUFFICIENT, SILENT, refusal_of, rehearsed_by
from app.errors import OrganizationDisabled, OrganizationSuspended, PointsError
from app.metrics.requests import current_record
from app.postgres.database import is_away, transaction

blueprint = Blueprint("send", __name__)

_RETRY_AFTER_S = {QUEUED: 1, SCHEDULED: 60, AWAITING_APPROVAL: 60}
# A larger body is read only after its key is checked.
_READ_FOR_STRANGERS_BYTES = 65_536
_READ = partial(read_issue_request, known=SEND)

_log = logs.logger()


@blueprint.post("/v1/points/send")
def send() -> Response:
    """Answer 201 with every transaction; 202 if the caller asks, if the batch has to wait, or if our wait runs out.

    A batch has to wait while it is scheduled, or awaits an approval.
    """
    wished = wish()
    return wished.named_in(_send(wished.wait_s))


def _send(wait_s: float) -> Response:
    record = current_record()
    try:
        asked = [_read_send()]  # Taken out by the call: while it waits, nothing must hold thousands of addresses.
        rehearsed = _rehearsed_by(asked[0].request)
        wait_new_s = wait_s if rehearsed.isdisjoint((ACCEPTED, SILENT)) else 0.0
        sent = send_path.process(asked.pop(), wait_s=wait_s, wait_new_s=wait_new_s, request_id=record.trace_id)
    except PointsError as error:
        record.organization_id = record.organization_id or error.organization_id
        raise
    accepted = sent.acceptance
    record.organization_id, record.batch_id = accepted.organization_id, accepted.batch_id
    if SILENT in rehearsed and not accepted.existed:
        end_connection()
    if accepted.status in (SCHEDULED, AWAITING_APPROVAL):
        return _accepted(accepted.batch_id, wait=accepted.status, status=accepted.status)
    if accepted.status == QUEUED:
        if not sent.is_waited_for:
            return _accepted(accepted.batch_id, wait="not_wished")
        record.waiting_since = sent.accepted_at
    try:
        rows = sent.rows or _read(accepted)
    except SQLAlchemyError as error:
        if accepted.status == QUEUED and is_away(error):
            # The batch is accepted: after an error the caller would send it again.
            return _accepted(accepted.batch_id, wait="not_read")
        raise
    return _answer(accepted, rows, wait="ran_out" if sent.had_place else "no_place")


def _read_send() -> Send:
    """Read the request. The key is checked when the send is accepted, or here if there is a fault to answer.

    Raises:
        InvalidKey: also if the request has faults; before a large body is read.
        InvalidRequest: with every fault.
    """
    key_hash = hash_of_key()
    length = request.content_length
    # A caller that waits to be told to send its body is not told before its key is checked.
    if length is None or length > _READ_FOR_STRANGERS_BYTES or "HTTP_EXPECT" in request.environ:
        caller()
    try:
        refuse_parameters()
        asked = read_json(_READ)
        if rehearsal() == INSUFFICIENT:
            asked = replace(asked, rehearsed_unpaid=True)
        return Send(key_hash, asked, idempotency_key())
    except (PointsError, HTTPException):
        caller()
        raise


def _rehearsed_by(request: IssueRequest) -> frozenset[str]:
    """Return what a send with a development key rehearses, by its recipients and by its header.

    Raises:
        PointsError: the error that they rehearse; or `InvalidKey`.
    """
    if not is_development_key():
        return frozenset()
    rehearsed = rehearsed_by(request)
    if (named := rehearsal()) is not None:
        rehearsed |= {named}
    if (refusal := refusal_of(rehearsed)) is not None:
        caller()
        raise refusal
    return rehearsed


def _read(accepted: Acceptance) -> Rows | None:
    """Return the committed batch, with its transactions once it is issued; None if there is no such batch."""
    with transaction() as connection:
        batch = find_accepted(connection, accepted.batch_id, organization_id=accepted.organization_id)
        if batch is None:
            return None
        return batch, transactions_of(
            connection, batch.id, organization_id=batch.organization_id
        ) if batch.status == ISSUED else []


def _answer(accepted: Acceptance, rows: Rows | None, *, wait: str) -> Response:
    """Answer from committed rows; `wait` says for the log why a batch that is still queued is answered 202.

    Raises:
        BatchLost: they are not there, or a failover gave the batch's id to another batch.
        BatchCancelled: it was cancelled, before this call or while it waited.
        BatchRejected: it was rejected before this call.
        MayNotIssue: the worker found the organization disabled or suspended under the row lock.
    """
    if rows is None or not accepted.is_of(rows[0]):
        _log.error("batch_lost", organization_id=accepted.organization_id, batch_id=accepted.batch_id)
        raise BatchLost
    batch, transactions = rows
    if batch.status == CANCELLED:
        raise BatchCancelled
    if batch.status == REJECTED:
        raise BatchRejected
    if batch.status == REFUSED:
        raise OrganizationDisabled if batch.refusal == OrganizationDisabled.code else OrganizationSuspended
    if batch.status == QUEUED:
        return _accepted(batch.id, wait=wait)
    body = payloads.issued_payload(batch, transactions, as_issued=True)
    response = envelope.success(body, status=201, batch_id=batch.id)
    if accepted.status == ISSUED:  # It was issued before this call.
        response.headers["Idempotency-Replayed"] = "true"
    response.headers["Location"] = f"/v1/batches/{batch.id}"
    return response


def _accepted(batch_id: int, *, wait: str, status: str = QUEUED) -> Response:
    current_record().wait = wait
    response = envelope.success({"batch_id": batch_id, "status": status}, status=202, batch_id=batch_id)
    response.headers["Location"] = f"/v1/batches/{batch_id}"
    response.headers["Retry-After"] = str(_RETRY_AFTER_S[status])
    return response
