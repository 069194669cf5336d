"""`POST /v1/points/reverse` and its verify: take points back, or ask how many would come back."""

from functools import partial
from typing import Any

from flask import Blueprint, Response
from sqlalchemy.exc import SQLAlchemyError

from app import logs
from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.body import read_json
from app.api.requests.query import refuse_parameters
from app.api.requests.send_headers import idempotency_key, wish
from app.api.sending.send_path import send_path
from app.api_keys import Caller
from app.errors import BalanceTooLarge, BatchNotIssued, NotFound, OrganizationDisabled, PointsError
from app.metrics.requests import current_record
from app.postgres.database import is_away, single_statement, transaction
from app.reversals import accept as reversal_acceptance
from app.reversals.accept import AcceptedReversal, ReversalLost
from app.reversals.request import ReverseReading, ReverseRequest, recoverable
from app.reversals.reversal import (
    DONE,
    QUEUED,
    REFUSED,
    EntryRow,
    Reversal,
    absent,
    entries_of,
    recoverable_additions,
    reversals,
    reverse_result,
)
from app.settings import Settings

blueprint = Blueprint("reverse", __name__)

_RETRY_AFTER_S = 1

# What a worker may refuse a reversal for, by the code that it writes.
_REFUSALS: dict[str | None, type[PointsError]] = {
    refusal.code: refusal for refusal in (OrganizationDisabled, BatchNotIssued, BalanceTooLarge)
}

_log = logs.logger()


@blueprint.post("/v1/points/reverse/verify")
def verify() -> Response:
    """Answer 200 with the points that would come back, even if there are none."""
    who = caller()
    request = _read(who)
    with transaction() as connection:
        status = reversal_acceptance.require_batch(connection, who, request)
        found = recoverable(connection, request, who.organization, batch_status=status)
    return envelope.success(envelope.verdict_payload(found), **recoverable_additions(found))


@blueprint.post("/v1/points/reverse")
def reverse() -> Response:
    """Answer 201 with the points taken from each transaction; 202 if the caller asks, or if the wait runs out."""
    wished = wish()
    return wished.named_in(_reverse(wished.wait_s))


def _reverse(wait_s: float) -> Response:
    who = caller()
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
    refuse_parameters()
    return read_json(partial(_read_existing, who))


def _read_existing(who: Caller, fields: dict[str, Any], limits: Settings) -> ReverseRequest:
    """Read the fields; an id that does not exist is a fault like any other."""
    reading = ReverseReading(fields, limits)
    if not reading.ids:
        return reading.request()
    with single_statement() as connection:
        return reading.request(absent(connection, reading.ids, who.scope))


def _answer(who: Caller, accepted: AcceptedReversal) -> Response:
    """Answer from committed rows.

    Raises:
        ReversalLost: it is not there, or a failover gave its id to another reversal.
        OrganizationDisabled, BatchNotIssued, BalanceTooLarge: the worker has refused it under the row lock.
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
    with transaction() as connection:
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
