"""`/v1/batches`: batches as they are now, and what is done with one: approve, reject, cancel, move."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from flask import Response
from sqlalchemy import Connection

from app.api.calls import Answer, call
from app.api.listing import page_answer
from app.api.openapi.examples import SUSPENDED, TO_BOTH
from app.api.refusals import BAD_LIST_QUERY, BAD_QUERY, refusal
from app.api.requests.query import query
from app.api_keys import Caller
from app.batches import approval, payloads, schedule
from app.batches.approval import REJECTION, read_rejection
from app.batches.batch import QUEUED, Approval, Batch, batches, find_metadata, listed_batches
from app.batches.errors import (
    BatchCancelled,
    BatchNotAwaiting,
    BatchNotScheduled,
    NotKnown,
    OwnBatch,
    ScheduledLimit,
)
from app.batches.fields import RESCHEDULE
from app.batches.recipients import recipients
from app.batches.request import read_reschedule
from app.batches.transaction import transactions_of
from app.errors import BatchConflict, NotFound, OrganizationDisabled, OrganizationSuspended
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.noun_fields import example
from app.pages import batch_pages, lists
from app.pages.queries import next_cursor, parse_page_request
from app.postgres.database import snapshot, transaction
from app.values.key_bounds import APPROVE, READ, SEND

# What differs in the examples.
_NOT_ISSUED = dict.fromkeys(("issued_at", "counts", "transactions", "amount", "current_balance"))
_QUEUED = {"status": "queued", "final": False, **_NOT_ISSUED}
_SCHEDULED = {"status": "scheduled", "send_at": "2026-02-01T09:00:00.000000Z", "final": False, **_NOT_ISSUED}
_APPROVAL = example(Approval)

_NO_BATCH = NotFound("batch", 1)
_NOT_KNOWN = refusal(
    "NotKnown",
    "A worker holds the organization's row, or the database is out of reach: it is not known what becomes of the"
    " batch. Make the same call again; that is safe.",
    NotKnown(),
)
_NOT_AWAITING = refusal(
    "NotAwaiting",
    "The batch does not await an approval; the sentence says what it is.",
    BatchNotAwaiting("The batch does not await an approval: it is issued."),
)
_of_batches = partial(call, group="Batches")


@_of_batches(
    "GET /v1/batches",
    "All batches, page by page",
    scopes=(READ, APPROVE),
    query="batches",
    answers=Answer(about="A page of the list.", data=listed_batches.page(), examples={"batches": {}}),
    refuses=[BAD_QUERY],
)
def list_batches(who: Caller) -> dict[str, Any]:
    """The organization's batches in the key's mode, as they are now, ordered by when they were accepted. With `email`
    they are ordered by their ids. A key without the scope `read` sees of them what awaits an approval, what it has
    answered, and what it has sent.

    {pages}
    """
    asked = parse_page_request("batches", query(), who)
    with snapshot() as connection:
        page = batch_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
        ids = [batch.id for batch in page.rows]
        issued = [batch.id for batch in page.rows if batch.debited_count]
        states = payloads.count_states(connection, issued, organization_id=who.organization.id)
        metadata = find_metadata(connection, ids, organization_id=who.organization.id)
    rows = [
        listed_batches.payload(
            batch._replace(states=states.get(batch.id, batch.states), metadata=metadata.get(batch.id))
        )
        for batch in page.rows
    ]
    return {"batches": rows, "next_cursor": next_cursor("batches", asked, page)}


@_of_batches(
    "GET /v1/batches/{id}",
    "One batch, as it is now",
    scopes=(READ, SEND, APPROVE),
    answers=Answer(
        about="The batch.",
        data=batches.model,
        examples={
            "batch_issued": TO_BOTH,
            "batch_queued": _QUEUED,
            "batch_scheduled": _SCHEDULED,
            "batch_awaiting_approval": _QUEUED | {"status": "awaiting_approval"},
            "batch_refused": {"status": "refused", "refusal": SUSPENDED.code, **_NOT_ISSUED},
        },
    ),
    refuses=[_NO_BATCH],
)
def show_batch(who: Caller, batch_id: int) -> dict[str, Any]:
    """Works before and after the batch is issued. Shows all later claims and reversals. A key without the scope `read`
    sees the batches that it has sent; with `approve`, also those that await an approval and those that it has answered.
    """
    with snapshot() as connection:
        return _payload(connection, _seen(connection, who, batch_id))


def _seen(connection: Connection, who: Caller, batch_id: int) -> Batch:
    batch = batches.get(connection, batch_id, who.scope)
    approval.require_seen(who, batch)
    return batch


@_of_batches(
    "GET /v1/batches/{id}/recipients",
    "The recipients of a batch, page by page",
    scopes=(READ, APPROVE),
    query="recipients",
    answers=Answer(
        about="A page of the recipients.",
        data=recipients.page(),
        examples={"recipients": {}},
    ),
    refuses=[_NO_BATCH, BAD_LIST_QUERY],
)
def list_recipients(who: Caller, batch_id: int) -> Response:
    """Whom the batch pays, and how much, in the order of the request: before the issue, for who approves it, and after
    it. `next_cursor` leads to the next page and is null at the end. What became of each is in its transactions.
    """
    require = partial(_seen, who=who, batch_id=batch_id)
    return page_answer("recipients", who, lists.recipients, recipients.payload, require=require, batch_id=batch_id)


def _payload(connection: Connection, batch: Batch) -> dict[str, Any]:
    transactions = transactions_of(connection, batch.id, organization_id=batch.organization_id)
    metadata = find_metadata(connection, [batch.id], organization_id=batch.organization_id).get(batch.id)
    return payloads.whole_batch_payload(batch, transactions, metadata=metadata)


def _act(who: Caller, batch_id: int, rule: Callable[..., object]) -> dict[str, Any]:
    """Do a rule of a batch, and return the batch as it is then."""
    with transaction() as connection:
        rule(connection, batch_id=batch_id)
        payload = _payload(connection, batches.get(connection, batch_id, who.scope))
    current_record().batch_id = batch_id
    return payload


@_of_batches(
    "PATCH /v1/batches/{id}",
    "Move a scheduled batch",
    scopes=(SEND,),
    body=RESCHEDULE,
    read=read_reschedule,
    sent={"tomorrow": {"send_at": "2026-02-02T09:00:00Z"}},
    answers=Answer(
        about="The batch, with its new `send_at`.",
        data=batches.model,
        examples={"batch_moved": _SCHEDULED | {"send_at": "2026-02-02T09:00:00.000000Z"}},
    ),
    refuses=[
        _NO_BATCH,
        refusal(
            "NotScheduled",
            "The batch is not scheduled: it awaits an approval, is queued or final. The sentence says what can be"
            " done.",
            BatchNotScheduled(schedule.TOO_LATE_TO_MOVE),
            BatchCancelled,
        ),
        _NOT_KNOWN,
    ],
)
def reschedule_batch(who: Caller, batch_id: int, send_at: datetime) -> dict[str, Any]:
    """Changes `send_at` while the batch is scheduled, also if the organization is disabled or suspended. A batch that
    was approved awaits another approval if it is moved to a later time than seven days after that.
    """
    return _act(who, batch_id, partial(schedule.reschedule, send_at=send_at, scope=who.scope, sent_by=who.sent_by))


@_of_batches(
    "POST /v1/batches/{id}/approve",
    "Approve a batch",
    scopes=(APPROVE,),
    answers=Answer(
        about="The batch, approved now or before.",
        data=batches.model,
        examples={"batch_approved": _QUEUED | {"approval": _APPROVAL}},
    ),
    refuses=[
        _NO_BATCH,
        refusal(
            "CannotApprove",
            "The key, or the member who made it, has sent this batch: somebody else must approve it. Or the"
            " organization is disabled or suspended, and the batch awaits the approval still. Or it has a `send_at`,"
            " and the organization already has 1,000 scheduled batches in this mode.",
            *(OwnBatch(), OrganizationDisabled, OrganizationSuspended, ScheduledLimit),
        ),
        _NOT_AWAITING,
        _NOT_KNOWN,
    ],
)
def approve_batch(who: Caller, batch_id: int) -> dict[str, Any]:
    """Approves a batch that awaits an approval: it is queued, or scheduled if its `send_at` is still to come, as if it
    had been accepted now. It is approved, rejected or cancelled, only one of these. Not by whoever has sent it.
    Approving it again changes nothing. What nobody has approved or rejected within 7 days is rejected.
    """
    with transaction() as connection:
        approved = approval.approve(connection, who, batch_id)
        payload = _payload(connection, batches.get(connection, batch_id, who.scope))
    current_record().batch_id = batch_id
    if approved is not None and approved.status == QUEUED:
        drains.ask(Job(who.organization.id, batch_id, approved.recipient_count, current_record().trace_id))
    return payload


@_of_batches(
    "POST /v1/batches/{id}/reject",
    "Reject a batch",
    scopes=(APPROVE,),
    body=REJECTION,
    read=read_rejection,
    sent={"a_rejection": {"reason": "The wrong list"}},
    answers=Answer(
        about="The batch, rejected now or before.",
        data=batches.model,
        examples={
            "batch_rejected": {
                "status": "rejected",
                "approval": _APPROVAL | {"reason": "The wrong list"},
                **_NOT_ISSUED,
            }
        },
    ),
    refuses=[_NO_BATCH, OwnBatch(), _NOT_AWAITING, _NOT_KNOWN],
)
def reject_batch(who: Caller, batch_id: int, reason: str) -> dict[str, Any]:
    """Rejects a batch that awaits an approval, for good: nobody is debited. Not by whoever has sent it.
    Rejecting it again changes nothing; the first reason stays.
    """
    return _act(who, batch_id, partial(approval.reject, who=who, reason=reason))


@_of_batches(
    "POST /v1/batches/{id}/cancel",
    "Cancel a batch",
    scopes=(SEND,),
    answers=Answer(
        about="The batch, cancelled now or before.",
        data=batches.model,
        examples={"batch_cancelled": _SCHEDULED | {"status": "cancelled", "final": True}},
    ),
    refuses=[
        _NO_BATCH,
        refusal(
            "Final",
            "The batch is issued, refused or rejected.",
            BatchConflict(schedule.TOO_LATE_TO_CANCEL),
        ),
        _NOT_KNOWN,
    ],
)
def cancel_batch(who: Caller, batch_id: int) -> dict[str, Any]:
    """Cancels a batch while it awaits an approval, is scheduled or queued. It is either cancelled or issued, never
    both. A call that waits for it is answered 409. Cancelling it again changes nothing. Works also while the
    organization is disabled or suspended.
    """
    return _act(who, batch_id, partial(schedule.cancel, scope=who.scope, sent_by=who.sent_by))
