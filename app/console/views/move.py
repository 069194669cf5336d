"""Moving a scheduled batch to another time."""

from flask import flash, redirect, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from app.actions import log as actions
from app.batches import schedule
from app.batches.errors import NotKnown
from app.batches.read import SCHEDULED
from app.console.blueprints import current_zone, needs, pages
from app.console.caller import calling_member, record_action
from app.console.costs import late_sentence
from app.console.forms import say_beside
from app.console.moment_form import MomentForm
from app.console.views.batches import get_batch
from app.errors import BatchConflict, InvalidRequest
from app.members.members import SENDER
from app.postgres.database import transaction
from app.values.zones import ZONE_OF_ALL, moment_in

Page = AnyResponse | tuple[str, int] | str


@pages.get("/batches/<int:batch_id>/move")
@needs(SENDER)
def ask_to_move(batch_id: int) -> Page:
    return _asking(batch_id, None)


@pages.post("/batches/<int:batch_id>/move")
@needs(SENDER)
def move(batch_id: int) -> Page:
    """Move the batch, or say that it is no longer scheduled. The same form sent again changes nothing."""
    form = MomentForm()
    send_at = form.moment() if form.validate() else None
    if send_at is None:
        return _asking(batch_id, form)
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
        return _asking(batch_id, form)
    except BatchConflict:
        flash(f"Batch {batch_id} is no longer scheduled, so its time stays as it is.", "bad")
    except NotKnown as error:
        flash(error.sentence, "bad")
        return redirect(url_for("console.ask_to_move", batch_id=batch_id), 303)
    return redirect(url_for("console.show_batch", batch_id=batch_id), 303)


def _asking(batch_id: int, form: MomentForm | None) -> Page:
    """Return the page of the form; with faults in it, as an answer to it."""
    with transaction() as connection:
        batch = get_batch(connection, calling_member(connection), batch_id)
        points = schedule.points_of(connection, batch.id, organization_id=batch.organization_id)
    if batch.status != SCHEDULED:
        return redirect(url_for("console.show_batch", batch_id=batch_id))
    shown = form or MomentForm(formdata=None, data=MomentForm.shown(batch.send_at))
    page = render_template("console/move.html", batch=batch, points=points, form=shown)
    return page if form is None else (page, 400)
