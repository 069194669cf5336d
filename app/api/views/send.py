"""`POST /v1/points/send`: accept a batch, hand it to the workers, and answer from the rows that they commit."""

from dataclasses import replace
from functools import partial

from flask import Response, request
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from app import logs
from app.api import envelope
from app.api.auth import caller, hash_of_key, is_development_key
from app.api.calls import Additions, Answer, call
from app.api.openapi import examples
from app.api.refusals import KEY_REUSED, refusal
from app.api.requests.body import read_json
from app.api.requests.query import refuse_parameters
from app.api.requests.send_headers import end_connection, idempotency_key, rehearsal, wish
from app.api.sending.send_path import send_path
from app.api.sending.waiting import Rows
from app.batches import payloads
from app.batches.accept import Acceptance, Send
from app.batches.batch import AWAITING_APPROVAL, CANCELLED, ISSUED, QUEUED, REFUSED, REJECTED, SCHEDULED, find_accepted
from app.batches.errors import BatchCancelled, BatchLost, BatchRejected, KeyLimit, ScheduledLimit
from app.batches.fields import SEND
from app.batches.request import IssueRequest, read_issue_request
from app.batches.schedule import ANSWERED_WITHIN_DAYS
from app.batches.transaction import transactions_of
from app.batches.verify import ACCEPTED, INSUFFICIENT, SILENT, refusal_of, rehearsed_by
from app.errors import InvalidRequest, OrganizationDisabled, OrganizationSuspended, PointsError
from app.metrics.requests import current_record
from app.noun_fields import Id, says, says_one_of
from app.postgres.database import is_away, transaction
from app.values import key_bounds

_RETRY_AFTER_S = {QUEUED: 1, SCHEDULED: 60, AWAITING_APPROVAL: 60}
# A larger body is read only after its key is checked.
_READ_FOR_STRANGERS_BYTES = 65_536
_READ = partial(read_issue_request, known=SEND)

_log = logs.logger()


class SendAdditions(Additions):
    """The batch of the send."""

    batch_id: Id = says("The id of the batch: `GET /v1/batches/{id}` reads it.", 1)


class AcceptedBatch(BaseModel):
    """A batch that is accepted and will be issued exactly once, if it is approved; read it at `Location`."""

    batch_id: Id = says("The id of the batch.", 1)
    status: str = says_one_of(
        (QUEUED, SCHEDULED, AWAITING_APPROVAL),
        "Queued: it waits for a worker. Scheduled: it waits for its `send_at`. Awaiting approval: another than its"
        f" sender must approve it within {ANSWERED_WITHIN_DAYS} days.",
        "queued",
    )


@call(
    "POST /v1/points/send",
    "Issue points",
    group="Points",
    scopes=(key_bounds.SEND,),
    headers=["Idempotency-Key", "Prefer", "Points-Rehearse"],
    body=SEND,
    sent=examples.ISSUES
    | examples.ALL_OR_NOBODY
    | {
        "later": {"recipient": examples.ADA, "amount": 50, "send_at": "2026-02-01T09:00:00Z"},
        "for_90_days": {"recipient": examples.GRACE, "amount": 50, "hold_days": 90},
    },
    answers=[
        Answer(
            status=201,
            about="The batch is issued. If the `Idempotency-Key` names a batch issued before: that batch, as it was"
            " answered then.",
            data=payloads.SendResult,
            beside=SendAdditions,
            schema="SendAnswer",
            headers=["Location", "Idempotency-Replayed", "Preference-Applied"],
            examples={
                "issued": examples.TO_BOTH,
                "issued_in_part": examples.TO_ONE_OF_BOTH,
                "issued_to_each": examples.TO_EACH,
            },
            links={"batch": ("showBatch", "$response.body#/additional_data/batch_id")},
        ),
        Answer(
            status=202,
            about="The batch is accepted and will be issued exactly once. It has a `send_at`, the caller preferred not"
            " to wait, or the wait ran out. Or it is of more points than the organization lets anybody issue"
            " alone: then it is issued once it is approved.",
            data=AcceptedBatch,
            beside=SendAdditions,
            schema="AcceptedAnswer",
            headers=["Location", "Retry-After", "Preference-Applied"],
            examples={
                "queued": {},
                "scheduled": {"status": "scheduled"},
                "awaiting_approval": {"status": "awaiting_approval"},
            },
            links={
                "batch": ("showBatch", "$response.body#/additional_data/batch_id"),
                "move": ("rescheduleBatch", "$response.body#/data/batch_id"),
                "cancel": ("cancelBatch", "$response.body#/data/batch_id"),
            },
        ),
    ],
    refuses=[
        refusal(
            "MayNotSend",
            "The organization is disabled or suspended, or already has 1,000 scheduled batches in this mode; or the"
            " batch is for more points than the key may send, in one batch or still on this day. Nothing was written.",
            *(OrganizationSuspended(), OrganizationDisabled, KeyLimit, ScheduledLimit),
            examples=["suspended"],
        ),
        refusal(
            "CalledOff",
            "The batch was cancelled while the call waited, or the `Idempotency-Key` names a batch that was"
            " cancelled or rejected.",
            *(BatchCancelled(), BatchRejected),
            examples=["cancelled"],
        ),
        KEY_REUSED,
    ],
    checks_itself=True,  # The key is checked when the send is accepted, in the same statement.
)
def send() -> Response:
    """Debits the organization and writes one transaction per recipient, in the order of the request, exactly once.
    Recipients are served while the balance lasts, and the rest get `debited: false`. If `atomic` is true and the
    balance cannot pay the whole batch, all get `debited: false`. The answer is 201 in each case. Points of a recipient
    without an account are held until there is one, or for `hold_days`.

    With `send_at` the batch is issued later: the body is checked and kept now. Accounts and balance are looked at when
    it is issued, at most 5 s after `send_at`. Nothing is reserved.

    Send an `Idempotency-Key`: then you can safely repeat a call whose answer was lost.

    With a development key, a recipient `suspended`, `disabled`, `insufficient`, `accepted`, `unavailable`, `silent` or
    `rate_limited` at `sandbox.points.test` makes the call meet what its name says, to rehearse it; so does the same
    word in `Points-Rehearse`.
    """
    try:
        wished = wish()
    except InvalidRequest:
        caller()
        raise
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
