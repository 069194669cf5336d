"""What is done with a batch that is not issued: another answers it, or it is cancelled, or moved to another time."""

from flask import flash, redirect, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from app.actions import log as actions
from app.batches import approval, schedule
from app.batches.errors import NotKnown, OwnBatch
from app.batches.read import AWAITING_APPROVAL, CANCELLED, QUEUED, SCHEDULED
from app.console.authors import authors_of
from app.console.blueprints import current_member, current_zone, needs, pages
from app.console.caller import calling_member, record_action
from app.console.costs import late_sentence
from app.console.forms import RejectForm, say_beside
from app.console.moment_form import MomentForm
from app.console.views.batches import get_batch
from app.errors import BatchConflict, InvalidRequest, LimitReached, MayNotIssue
from app.members.members import APPROVER, SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.postgres.database import transaction
from app.uploads import listed
from app.values.zones import ZONE_OF_ALL, moment_in

_RECIPIENTS_SHOWN = 10

Page = AnyResponse | tuple[str, int] | str


@pages.get("/batches/<int:batch_id>/approval")
@needs(APPROVER)
def ask_to_answer(batch_id: int) -> Page:
    return _asking_to_answer(batch_id, RejectForm(formdata=None))


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
        page = _asking_to_answer(batch_id, form)
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


def _asking_to_answer(batch_id: int, form: RejectForm) -> AnyResponse | str:
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


@pages.get("/batches/<int:batch_id>/cancel")
@needs(SENDER)
def ask_to_cancel(batch_id: int) -> AnyResponse | str:
    with transaction() as connection:
        batch = get_batch(connection, calling_member(connection), batch_id)
        points = schedule.points_of(connection, batch.id, organization_id=batch.organization_id)
    if batch.is_final:
        return redirect(url_for("console.show_batch", batch_id=batch_id))
    return render_template("console/cancel.html", batch=batch, points=points)


@pages.post("/batches/<int:batch_id>/cancel")
@needs(SENDER)
def cancel(batch_id: int) -> AnyResponse:
    """Cancel the batch, or say that it was issued meanwhile, or that it is not known. Again, it changes nothing."""
    try:
        with transaction() as connection:
            who = calling_member(connection)
            batch = get_batch(connection, who, batch_id)
            schedule.cancel(connection, batch_id, organization_id=who.organization.id, sandbox=who.sandbox)
            if batch.status != CANCELLED:
                record_action(connection, actions.CANCELLED, batch_id, sandbox=who.sandbox)
        flash(f"Batch {batch_id} is cancelled: nobody was debited.")
    except BatchConflict:
        flash(f"Batch {batch_id} was issued or refused meanwhile, so it stays. Issued points can be taken back.")
    except NotKnown as error:
        flash(error.sentence)
        return redirect(url_for("console.ask_to_cancel", batch_id=batch_id), 303)
    return redirect(url_for("console.show_batch", batch_id=batch_id), 303)


@pages.get("/batches/<int:batch_id>/move")
@needs(SENDER)
def ask_to_move(batch_id: int) -> Page:
    return _asking_to_move(batch_id, None)


@pages.post("/batches/<int:batch_id>/move")
@needs(SENDER)
def move(batch_id: int) -> Page:
    """Move the batch, or say that it is no longer scheduled. The same form sent again changes nothing."""
    form = MomentForm()
    send_at = form.moment() if form.validate() else None
    if send_at is None:
        return _asking_to_move(batch_id, form)
    try:
        with transaction() as connection:
            who = calling_member(connection)
            organization_id = who.organization.id
            if schedule.reschedule(connection, batch_id, send_at, organization_id=organization_id, sandbox=who.sandbox):
                detail = f"to {moment_in(ZONE_OF_ALL, send_at)}"
                record_action(connection, actions.MOVED, batch_id, sandbox=who.sandbox, detail=detail)
        flash(f"Batch {batch_id} is scheduled for {moment_in(current_zone(), send_at)}.")
    except InvalidRequest as error:
        say_beside(form.day, late_sentence(error.faults["send_at"][0]))
        return _asking_to_move(batch_id, form)
    except BatchConflict:
        flash(f"Batch {batch_id} is no longer scheduled, so its time stays as it is.", "bad")
    except NotKnown as error:
        flash(error.sentence, "bad")
        return redirect(url_for("console.ask_to_move", batch_id=batch_id), 303)
    return redirect(url_for("console.show_batch", batch_id=batch_id), 303)


def _asking_to_move(batch_id: int, form: MomentForm | None) -> Page:
    """Return the page of the form; with faults in it, as an answer to it."""
    with transaction() as connection:
        batch = get_batch(connection, calling_member(connection), batch_id)
        points = schedule.points_of(connection, batch.id, organization_id=batch.organization_id)
    if batch.status != SCHEDULED:
        return redirect(url_for("console.show_batch", batch_id=batch_id))
    shown = form or MomentForm(formdata=None, data=MomentForm.shown(batch.send_at))
    page = render_template("console/move.html", batch=batch, points=points, form=shown)
    return page if form is None else (page, 400)
