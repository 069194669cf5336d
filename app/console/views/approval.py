"""Approving or rejecting a batch that another has sent."""

from flask import flash, redirect, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from app.actions import log as actions
from app.batches import approval, schedule
from app.batches.errors import NotKnown, OwnBatch
from app.batches.read import AWAITING_APPROVAL, QUEUED
from app.console.authors import authors_of
from app.console.blueprints import current_member, needs, pages
from app.console.caller import calling_member, record_action
from app.console.forms import RejectForm
from app.console.views.batches import get_batch
from app.errors import BatchConflict, LimitReached, MayNotIssue
from app.members.members import APPROVER
from app.messaging.drains import Job, drains
from app.metrics.record import current_record
from app.postgres.database import transaction
from app.uploads import listed

_RECIPIENTS_SHOWN = 10

Page = AnyResponse | tuple[str, int] | str


@pages.get("/batches/<int:batch_id>/approval")
@needs(APPROVER)
def ask_to_answer(batch_id: int) -> Page:
    return _asking(batch_id, RejectForm(formdata=None))


@pages.post("/batches/<int:batch_id>/approve")
@needs(APPROVER)
def approve(batch_id: int) -> AnyResponse:
    """Approve the batch, or say why that is not possible. Again, it changes nothing."""
    try:
        with transaction() as connection:
            who = calling_member(connection)
            approved = approval.approve(connection, who, batch_id)
            if approved is not None:
                record_action(connection, actions.APPROVED, batch_id, sandbox=who.sandbox)
    except (OwnBatch, BatchConflict, MayNotIssue, LimitReached, NotKnown) as error:
        flash(error.sentence, "bad")
    else:
        if approved is not None and approved.status == QUEUED:
            drains.ask(Job(who.organization.id, batch_id, approved.recipient_count, current_record().trace_id))
        flash(f"Batch {batch_id} is approved.")
    return redirect(url_for("console.show_batch", batch_id=batch_id), 303)


@pages.post("/batches/<int:batch_id>/reject")
@needs(APPROVER)
def reject(batch_id: int) -> Page:
    """Reject the batch, or say why that is not possible. Again, it changes nothing."""
    form = RejectForm()
    if not form.validate():
        page = _asking(batch_id, form)
        return (page, 400) if isinstance(page, str) else page
    try:
        with transaction() as connection:
            who = calling_member(connection)
            if approval.reject(connection, who, batch_id, form.reason.data):
                record_action(connection, actions.REJECTED, batch_id, sandbox=who.sandbox, detail=form.reason.data)
    except (OwnBatch, BatchConflict, NotKnown) as error:
        flash(error.sentence, "bad")
    else:
        flash(f"Batch {batch_id} is rejected: nobody was debited.")
    return redirect(url_for("console.show_batch", batch_id=batch_id), 303)


def _asking(batch_id: int, form: RejectForm) -> AnyResponse | str:
    with transaction() as connection:
        who = calling_member(connection)
        batch = get_batch(connection, who, batch_id)
        if batch.status != AWAITING_APPROVAL:
            return redirect(url_for("console.show_batch", batch_id=batch_id))
        return render_template(
            "console/approval.html",
            batch=batch,
            is_own=batch.member_id == current_member().id,
            points=schedule.points_of(connection, batch.id, organization_id=batch.organization_id),
            organization=who.organization,
            authors=authors_of(connection, [batch]),
            recipients=approval.first_recipients(
                connection, batch.id, organization_id=batch.organization_id, at_most=_RECIPIENTS_SHOWN
            ),
            sent_from=listed.of_batch(connection, batch.id, who.organization.id, sandbox=who.sandbox),
            form=form,
        )
