"""`POST /v1/points/reverse` and its verify: take points back, or ask how many would come back."""

from functools import partial
from typing import Any

from flask import Response
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from app import logs
from app.api import envelope
from app.api.auth import caller
from app.api.calls import Additions, Answer, call
from app.api.openapi.examples import A_PART, FROM_BOTH
from app.api.refusals import KEY_REUSED, refusal
from app.api.requests.body import read_json
from app.api.requests.query import refuse_parameters
from app.api.requests.send_headers import idempotency_key, refuse_headers, wish
from app.api.sending.send_path import send_path
from app.api_keys import Caller
from app.errors import BalanceTooLarge, BatchNotIssued, NotFound, OrganizationDisabled, PointsError
from app.metrics.requests import current_record
from app.noun_fields import Id, Points, says, says_one_of
from app.postgres.database import is_away, single_statement, snapshot, transaction
from app.reversals import accept as reversal_acceptance
from app.reversals.accept import AcceptedReversal, BatchAwaitsApproval, BatchScheduled, ReversalLost
from app.reversals.request import REVERSE, OtherSum, ReverseReading, ReverseRequest, recoverable
from app.reversals.reversal import (
    DONE,
    QUEUED,
    REFUSED,
    EntryRow,
    Reversal,
    ReverseResult,
    absent,
    entries_of,
    recoverable_additions,
    reversals,
    reverse_result,
)
from app.settings import Settings
from app.values import key_bounds

_RETRY_AFTER_S = 1

# What a worker may refuse a reversal for, by the code that it writes.
_REFUSALS: dict[str | None, type[PointsError]] = {
    error.code: error for error in (OrganizationDisabled, BatchNotIssued, OtherSum, BalanceTooLarge)
}

_log = logs.logger()


class ReverseVerdict(BaseModel):
    """Whether a reversal would take any points back now."""

    validated: bool = says("True: it would; with `atomic`, all that was asked for.", True)
    error: str | None = says("Why not, as a sentence; null when it is possible.", None)


class ReverseVerifyAdditions(Additions):
    """What would be taken, for programs: the points, and the number of transactions in each state, all as the `queued`
    reversals will leave them.
    """

    recoverable: Points = says("Points that would come back, after what the queued reversals take.", 100)
    transactions: int = says("All transactions asked for.", 2, ge=0)
    held: int = says("Transactions with points left that are held.", 1, ge=0)
    credited: int = says("Transactions with points left that were credited to a user.", 1, ge=0)
    already_reversed: int = says("Transactions with no points left.", 0, ge=0)
    not_debited: int = says("Transactions that were not debited.", 0, ge=0)
    queued: int = says("Reversals of these transactions that are not done yet, and come first.", 0, ge=0)


class QueuedReversal(BaseModel):
    """A reversal that is accepted and will be done exactly once; read it at `Location`."""

    reversal_id: Id = says("The id of the reversal.", 2)
    status: str = says_one_of((QUEUED,), "It waits for a worker.", "queued")


_SENT = {
    "take_a_batch": {"batch": 1, "reason": "The wrong list"},
    "take_transactions": {"transactions": [131_072, 131_073], "amount": 20, "reason": "The wrong list"},
}
_NO_BATCH = NotFound("batch", 1)
# An id that does not exist is a fault of the body, so it is read with the caller.
_of_points = partial(call, group="Points", scopes=(key_bounds.REVERSE,), body=REVERSE, sent=_SENT, checks_itself=True)


@_of_points(
    "POST /v1/points/reverse/verify",
    "Ask what could be taken back",
    answers=Answer(
        about="The points that would come back.",
        data=ReverseVerdict,
        beside=ReverseVerifyAdditions,
        schema="ReverseVerifyAnswer",
        examples={
            "would_come_back": {},
            "nothing_left": {"validated": False, "error": "Nothing is left that could be taken back."},
        },
        examples_beside={
            "nothing_left": {"recoverable": 0, "held": 0, "credited": 0, "already_reversed": 2},
        },
    ),
    refuses=[_NO_BATCH],
)
def verify_reverse() -> Response:
    """A check only: nothing is written. The body and its faults are those of a reversal. If nothing would be taken, the
    answer is also 200, with `validated: false`.
    """
    who = caller()
    refuse_headers(["Idempotency-Key", "Prefer"])
    request = _read(who)
    with snapshot() as connection:
        status = reversal_acceptance.require_batch(connection, who, request)
        found = recoverable(connection, request, who.organization, batch_status=status)
    return envelope.success(envelope.verdict_payload(found), **recoverable_additions(found))


@_of_points(
    "POST /v1/points/reverse",
    "Take points back",
    headers=["Idempotency-Key", "Prefer"],
    answers=[
        Answer(
            status=201,
            about="The reversal is done. If the `Idempotency-Key` names one done before: that reversal, as it was"
            " answered then.",
            data=ReverseResult,
            schema="ReverseAnswer",
            headers=["Location", "Idempotency-Replayed", "Preference-Applied"],
            examples={"taken_back": FROM_BOTH, "taken_in_part": A_PART},
            links={"reversal": ("showReversal", "$response.body#/data/reversal_id")},
        ),
        Answer(
            status=202,
            about="The reversal is accepted and will be done exactly once. The caller preferred not to wait, or the"
            " wait ran out.",
            data=QueuedReversal,
            headers=["Location", "Retry-After", "Preference-Applied"],
            examples={"reversal_waits": {}},
            links={"reversal": ("showReversal", "$response.body#/data/reversal_id")},
        ),
    ],
    refuses=[
        refusal("Disabled", "The organization is disabled. Nothing was taken.", OrganizationDisabled()),
        _NO_BATCH,
        refusal(
            "CannotReverse",
            "The balance would exceed 64 bits; or the batch is only scheduled, or awaits an approval, and can be"
            " cancelled; or it was cancelled, refused or rejected, so there is nothing to take back; or another sum"
            " than `expect` names would come back. Nothing was taken.",
            *(BalanceTooLarge(), BatchScheduled, BatchAwaitsApproval, BatchNotIssued, OtherSum),
            examples=["balance_too_large"],
        ),
        KEY_REUSED,
    ],
)
def reverse() -> Response:
    """Takes points of a batch or of some transactions back to the organization, in whole or in part. Sends and
    reversals are worked off in the order in which they were accepted. Held points can then never be claimed; credited
    points are taken from the account. Nothing is edited: the flags stay as they were issued, and `reversed` and `state`
    show the points taken since.

    Points can be taken only once, so a repetition takes nothing more. With an `Idempotency-Key` it is answered as the
    first call was. Keys of sends and of reversals are separate. A suspended organization may reverse too.
    """
    who, wished = caller(), wish()
    return wished.named_in(_reverse(who, wished.wait_s))


def _reverse(who: Caller, wait_s: float) -> Response:
    request, key = _read(who), idempotency_key()
    with transaction() as connection:
        accepted = reversal_acceptance.accept(connection, who, request, key)
    if accepted.status == QUEUED:
        send_path.wait_for_reversal(
            who.organization.id, accepted.reversal_id, wait_s=wait_s, request_id=current_record().trace_id
        )
        if wait_s == 0:
            return _queued(accepted.reversal_id)
    try:
        return _answer(who, accepted)
    except SQLAlchemyError as error:
        if accepted.status == QUEUED and is_away(error):
            return _queued(accepted.reversal_id)
        raise


def _read(who: Caller) -> ReverseRequest:
    """Read the request.

    Raises:
        InvalidRequest: with every fault.
    """
    refuse_headers(["Points-Rehearse"])
    refuse_parameters()
    return read_json(partial(_read_existing, who))


def _read_existing(who: Caller, fields: dict[str, Any], limits: Settings) -> ReverseRequest:
    """Read the fields; an id that does not exist is a fault like any other."""
    reading = ReverseReading(fields, limits)
    if not reading.ids:
        return reading.request()
    with single_statement() as connection:
        return reading.request(absent(connection, reading.ids, who.scope, sent_by=who.sent_by))


def _answer(who: Caller, accepted: AcceptedReversal) -> Response:
    """Answer from committed rows.

    Raises:
        ReversalLost: it is not there, or a failover gave its id to another reversal.
        OrganizationDisabled, BatchNotIssued, OtherSum, BalanceTooLarge: the worker has refused it under the row lock.
    """
    found = _committed(who, accepted.reversal_id)
    if found is None or found[0].created_at != accepted.created_at:
        _log.error("reversal_lost", organization_id=who.organization.id, reversal_id=accepted.reversal_id)
        raise ReversalLost
    reversal, entries = found
    if reversal.status == REFUSED:
        raise _REFUSALS.get(reversal.refusal, OrganizationDisabled)
    if reversal.status == QUEUED:
        return _queued(reversal.id)
    response = envelope.success(reverse_result(reversal, entries), status=201)
    if accepted.status == DONE:  # It was done before this call.
        response.headers["Idempotency-Replayed"] = "true"
    response.headers["Location"] = f"/v1/reversals/{reversal.id}"
    return response


def _committed(who: Caller, reversal_id: int) -> tuple[Reversal, list[EntryRow]] | None:
    with snapshot() as connection:
        try:
            reversal = reversals.get(connection, reversal_id, who.scope)
        except NotFound:
            return None
        if reversal.status != DONE:
            return reversal, []
        return reversal, entries_of(connection, reversal.id, organization_id=reversal.organization_id)


def _queued(reversal_id: int) -> Response:
    response = envelope.success({"reversal_id": reversal_id, "status": QUEUED}, status=202)
    response.headers["Location"] = f"/v1/reversals/{reversal_id}"
    response.headers["Retry-After"] = str(_RETRY_AFTER_S)
    return response
