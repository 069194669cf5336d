"""*Batches*: a batch with its transactions; and what is done before the issue: answer, cancel, move."""

from functools import partial
from typing import Any

from flask import redirect, render_template, request, url_for
from sqlalchemy import Connection

from app.actions import log as actions
from app.api_keys import Caller
from app.batches import approval, awaiting, payloads, schedule
from app.batches.batch import AWAITING_APPROVAL, CANCELLED, ISSUED, QUEUED, SCHEDULED, Batch, batches
from app.batches.errors import NotKnown, OwnBatch
from app.batches.payloads import sums_of
from app.batches.recipients import recipients_of
from app.batches.schedule import Payable
from app.batches.transaction import transactions_of
from app.console.blueprints import Page, current_member, current_scope, current_zone, pages, to_page
from app.console.caller import act, authors_of, calling_member
from app.console.forms import RejectForm, amount_of, say_beside
from app.console.send_forms import MomentForm
from app.console.sending import late_sentence
from app.errors import BatchConflict, InvalidRequest, LimitReached, MayNotIssue
from app.members.members import APPROVER, SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.postgres.database import snapshot
from app.reversals.reversal import of_batch
from app.uploads import listed as listed_uploads
from app.values.zones import ZONE_OF_ALL, moment_in

TRANSACTIONS_SHOWN = 100
_REVERSALS_SHOWN = 50
_RECIPIENTS_SHOWN = 10


@pages.get("/batches/<int:batch_id>")
def show_batch(batch_id: int) -> str:
    first = (amount_of(request.args.get("from"), digits_max=6) or 1) - 1  # The first place on the page, from 0.
    with snapshot() as connection:
        who = calling_member(connection)
        batch = get_batch(connection, batch_id)
        of = {"organization_id": batch.organization_id}
        rows = transactions_of(connection, batch.id, **of, first=first, at_most=TRANSACTIONS_SHOWN)
        sums = sums_of(connection, [batch.id], **of)
        unissued = _of_unissued(connection, who, batch, first)
        reversed_by = of_batch(connection, batch.id, who.scope, at_most=_REVERSALS_SHOWN)
        authors = authors_of(connection, [batch, *reversed_by])
        sent_from = listed_uploads.of_batch(connection, batch.id, who.scope)
        part = listed_uploads.part_of(connection, sent_from.id, batch.id) if sent_from and not batch.is_final else None
    return render_template(
        "console/batch.html",
        batch=batch,
        **unissued,
        sums=sums,
        reversals=reversed_by,
        authors=authors,
        sent_from=sent_from,
        part=part,
        transactions=payloads.transaction_payloads((batch, row) for row in rows),
        first=first,
        page_size=TRANSACTIONS_SHOWN,
        organization=who.organization,
    )


def _of_unissued(connection: Connection, who: Caller, batch: Batch, first: int) -> dict[str, Any]:
    """Return what the page shows only before the issue: whom the batch is to pay, and who may answer it until when."""
    of, awaits = {"organization_id": batch.organization_id}, batch.status == AWAITING_APPROVAL
    return {
        "recipients": []
        if batch.status == ISSUED
        else recipients_of(connection, batch.id, **of, first=first, at_most=TRANSACTIONS_SHOWN),
        "payable": schedule.payable_of(connection, batch.id, **of) if awaits or batch.status == SCHEDULED else None,
        "answer_by": awaiting.answer_by(connection, batch.id, **of) if awaits else None,
        "is_own": awaits and approval.is_own(connection, who, batch),
    }


def get_batch(connection: Connection, batch_id: int) -> Batch:
    """Return a batch of the member's organization, in the mode of the page.

    Raises:
        NotFound: there is no such batch.
    """
    return batches.get(connection, batch_id, current_scope())


# What another answer, a change of the organization, or a lock may have made impossible meanwhile.
_REFUSALS = (OwnBatch, BatchConflict, MayNotIssue, LimitReached, NotKnown)


@pages.get("/batches/<int:batch_id>/approval", role=APPROVER, asks=True)
def ask_to_answer(batch_id: int) -> Page:
    return _asking_to_answer(batch_id, RejectForm())


@pages.post("/batches/<int:batch_id>/approve", role=APPROVER)
def approve(batch_id: int) -> Page:
    """Approve the batch, or say why that is not possible. Again, it changes nothing."""
    try:
        approved = act(actions.APPROVED, batch_id, partial(approval.approve, batch_id=batch_id))
    except _REFUSALS as error:
        return to_page("show_batch", error.sentence, "bad", batch_id=batch_id)
    if approved is not None and approved.status == QUEUED:
        organization_id = current_member().organization_id
        drains.ask(Job(organization_id, batch_id, approved.recipient_count, current_record().trace_id))
    return to_page("show_batch", f"Batch {batch_id} is approved.", batch_id=batch_id)


@pages.post("/batches/<int:batch_id>/reject", role=APPROVER)
def reject(batch_id: int) -> Page:
    """Reject the batch, or say why that is not possible. Again, it changes nothing."""
    form = RejectForm()
    if not form.validate():
        page = _asking_to_answer(batch_id, form)
        return (page, 400) if isinstance(page, str) else page
    reason = form.reason.data
    try:
        act(actions.REJECTED, batch_id, partial(approval.reject, batch_id=batch_id, reason=reason), detail=reason)
    except _REFUSALS as error:
        return to_page("show_batch", error.sentence, "bad", batch_id=batch_id)
    return to_page("show_batch", f"Batch {batch_id} is rejected: nobody was debited.", batch_id=batch_id)


def _asking_to_answer(batch_id: int, form: RejectForm) -> Page:
    with snapshot() as connection:
        who = calling_member(connection)
        batch = get_batch(connection, batch_id)
        if batch.status != AWAITING_APPROVAL:
            return redirect(url_for("console.show_batch", batch_id=batch_id))
        its_organization = {"organization_id": batch.organization_id}
        return render_template(
            "console/approval.html",
            batch=batch,
            is_own=approval.is_own(connection, who, batch),
            payable=schedule.payable_of(connection, batch.id, **its_organization),
            organization=who.organization,
            authors=authors_of(connection, [batch]),
            recipients=recipients_of(connection, batch.id, **its_organization, at_most=_RECIPIENTS_SHOWN),
            sent_from=listed_uploads.of_batch(connection, batch.id, who.scope),
            form=form,
        )


@pages.form("/batches/<int:batch_id>/cancel", role=SENDER, asks=True)
def cancel(batch_id: int) -> Page:
    """Cancel the batch, or say that it was issued meanwhile, or that it is not known. Again, it changes nothing."""
    if request.method != "POST":
        batch, payable = _with_payable(batch_id)
        page = render_template("console/cancel.html", batch=batch, payable=payable)
        return redirect(url_for("console.show_batch", batch_id=batch_id)) if batch.is_final else page

    def rule(connection: Connection, who: Caller) -> bool:
        was_cancelled = get_batch(connection, batch_id).status == CANCELLED
        schedule.cancel(connection, batch_id, who.scope)
        return not was_cancelled

    try:
        act(actions.CANCELLED, batch_id, rule)
        says = f"Batch {batch_id} is cancelled: nobody was debited."
    except BatchConflict:
        says = f"Batch {batch_id} was issued or refused meanwhile, so it stays. Issued points can be taken back."
    except NotKnown as error:
        return to_page("cancel", error.sentence, batch_id=batch_id)
    return to_page("show_batch", says, batch_id=batch_id)


@pages.form("/batches/<int:batch_id>/move", role=SENDER, asks=True)
def move(batch_id: int) -> Page:
    """Move the batch, or say that it is no longer scheduled. The same form sent again changes nothing."""
    form = MomentForm()
    send_at = form.moment() if form.validate_on_submit() else None
    if send_at is None:
        return _asking_to_move(batch_id, form)

    def rule(connection: Connection, who: Caller) -> str | None:
        return schedule.reschedule(connection, batch_id, send_at, who.scope)

    try:
        status = act(actions.MOVED, batch_id, rule, detail=f"to {moment_in(ZONE_OF_ALL, send_at)}")
    except InvalidRequest as error:
        say_beside(form.day, late_sentence(error.faults["send_at"][0]))
        return _asking_to_move(batch_id, form)
    except BatchConflict:
        says = f"Batch {batch_id} is no longer scheduled, so its time stays as it is."
        return to_page("show_batch", says, "bad", batch_id=batch_id)
    except NotKnown as error:
        return to_page("move", error.sentence, "bad", batch_id=batch_id)
    moment = moment_in(current_zone(), send_at)
    awaits = " Its approval is too old for that, so it awaits another." if status == AWAITING_APPROVAL else ""
    return to_page("show_batch", f"Batch {batch_id} is scheduled for {moment}.{awaits}", batch_id=batch_id)


def _asking_to_move(batch_id: int, form: MomentForm) -> Page:
    """Return the page of the form; with faults in it, as an answer to it."""
    batch, payable = _with_payable(batch_id)
    if batch.status != SCHEDULED:
        return redirect(url_for("console.show_batch", batch_id=batch_id))
    page = render_template("console/move.html", batch=batch, payable=payable, form=form.or_at(batch.send_at))
    return (page, 400) if form.is_submitted() else page


def _with_payable(batch_id: int) -> tuple[Batch, Payable]:
    """Return a batch, and whom it pays."""
    with snapshot() as connection:
        batch = get_batch(connection, batch_id)
        return batch, schedule.payable_of(connection, batch.id, organization_id=batch.organization_id)
