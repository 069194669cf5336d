"""`POST /v1/points/send`: accept a batch, hand it to the workers, and answer with what they committed."""

import re
import threading
import time

from flask import Blueprint, Response, request

from app import batches, queue
from app.api import envelope
from app.api.auth import caller
from app.api.body import json_bytes
from app.api.record import record
from app.api.schemas import parse_issue_request
from app.api.waiting import waiting
from app.api_keys import Caller
from app.batches import Acceptance, BatchRow, IssueRequest, TransactionRow
from app.database import transaction
from app.errors import InvalidRequest, OrganizationDisabled, OrganizationSuspended
from app.ledger.verify import may_not_issue
from app.settings import settings

blueprint = Blueprint("send", __name__)

_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}\Z")
_RETRY_AFTER_S = 1


@blueprint.post("/v1/points/send")
def send() -> Response:
    """Answer 201 with every transaction, or 202 when asked to, or when the wait runs out."""
    who = caller()
    issue_request = parse_issue_request(json_bytes(), settings())
    idempotency_key = _idempotency_key()
    accepted = _accept(who, issue_request, idempotency_key)
    record().batch_id = accepted.batch_id
    if accepted.status != batches.QUEUED:
        return _answer(accepted, *_read(who, accepted))
    if _wants_no_wait():
        _submit(who, accepted, issue_request)
        return _accepted(accepted.batch_id)
    record().waiting_since = time.perf_counter()
    with waiting.expect(accepted.batch_id) as woken:  # Before submitting, so that no hint is missed.
        _submit(who, accepted, issue_request)
        return _answer(accepted, *_wait(who, accepted, woken))


def _accept(who: Caller, issue_request: IssueRequest, idempotency_key: str | None) -> Acceptance:
    """Write the queued batch and commit: from then on it cannot be lost. Or find the one its key names.

    Raises:
        IdempotencyKeyReused: the key names a batch of another meaning.
        MayNotIssue: the organization is disabled or suspended. A batch issued before that is found first.
    """
    organization = who.organization
    with transaction() as connection:
        if idempotency_key is not None and (
            known := batches.find_by_idempotency_key(
                connection,
                organization.id,
                issue_request,
                sandbox=who.sandbox,
                idempotency_key=idempotency_key,
            )
        ):
            return known
        refusal = may_not_issue(is_disabled=organization.is_disabled, is_suspended=organization.is_suspended)
        if refusal is not None:
            raise refusal
        batch_id = batches.accept(
            connection, organization.id, issue_request, sandbox=who.sandbox, idempotency_key=idempotency_key
        )
    if batch_id is None:  # Another request took the key in this moment: it is there now, so join it.
        return _accept(who, issue_request, idempotency_key)
    return Acceptance(batch_id=batch_id, status=batches.QUEUED, existed=False)


def _submit(who: Caller, accepted: Acceptance, issue_request: IssueRequest) -> None:
    """Ask the workers to issue a batch of our own. A retry that joins one leaves that to whoever it belongs to."""
    if not accepted.existed:
        queue.submit(
            who.organization.id,
            batch_id=accepted.batch_id,
            recipients=len(issue_request.emails),
            request_id=record().trace_id,
        )


def _wait(who: Caller, accepted: Acceptance, woken: threading.Event) -> tuple[BatchRow, list[TransactionRow]]:
    """Wait until the batch's row is final or the deadline has come, and return it as it then is."""
    deadline = time.monotonic() + settings().wait_s
    while True:
        in_time = woken.wait(max(0.0, deadline - time.monotonic()))
        batch, transactions = _read(who, accepted)
        if batch.status != batches.QUEUED or not in_time:
            return batch, transactions
        woken.clear()  # The row decides, and not the hint: wait on.


def _read(who: Caller, accepted: Acceptance) -> tuple[BatchRow, list[TransactionRow]]:
    """Return the batch as it is committed, with its transactions once it is issued."""
    with transaction() as connection:
        batch = batches.find(connection, accepted.batch_id, organization_id=who.organization.id, sandbox=who.sandbox)
        assert batch is not None, "an accepted batch is never deleted"
        transactions = batches.transactions_of(connection, batch.id) if batch.status == batches.ISSUED else []
    return batch, transactions


def _answer(accepted: Acceptance, batch: BatchRow, transactions: list[TransactionRow]) -> Response:
    """Answer from committed rows.

    Raises:
        MayNotIssue: the worker found the organization disabled or suspended under the row lock.
    """
    if batch.status == batches.REFUSED:
        raise OrganizationDisabled if batch.refusal == OrganizationDisabled.code else OrganizationSuspended
    if batch.status == batches.QUEUED:
        return _accepted(batch.id)
    body = envelope.issued_body(batch, transactions, as_issued=True)
    response = envelope.success(body, status=201, batch_id=batch.id)
    if accepted.status == batches.ISSUED:  # It was issued before this call: the same answer again.
        response.headers["Idempotency-Replayed"] = "true"
    return response


def _accepted(batch_id: int) -> Response:
    response = envelope.success({"batch_id": batch_id, "status": batches.QUEUED}, status=202, batch_id=batch_id)
    response.headers["Location"] = f"/v1/batches/{batch_id}"
    response.headers["Retry-After"] = str(_RETRY_AFTER_S)
    return response


def _idempotency_key() -> str | None:
    """Return the `Idempotency-Key` of the request, or None.

    Raises:
        InvalidRequest: it is not 1 to 255 visible ASCII characters.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None or _IDEMPOTENCY_KEY.match(key):
        return key
    seen = f"it has {len(key)}" if not 1 <= len(key) <= 255 else "some of its characters are of another kind"
    sentence = f"The Idempotency-Key must be 1 to 255 visible ASCII characters, but {seen}."
    raise InvalidRequest({"idempotency_key": [sentence]})


def _wants_no_wait() -> bool:
    """Tell whether the caller prefers not to wait (RFC 7240: `Prefer: respond-async`, in any case, among others)."""
    preferences = ",".join(request.headers.getlist("Prefer")).lower().split(",")
    return any(preference.partition(";")[0].strip() == "respond-async" for preference in preferences)
