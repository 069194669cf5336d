"""Cancelling a batch that is queued or scheduled."""

from flask import flash, redirect, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from app.actions import log as actions
from app.batches import schedule
from app.batches.errors import NotKnown
from app.batches.read import CANCELLED
from app.console.blueprints import needs, pages
from app.console.caller import calling_member, record_action
from app.console.views.batches import get_batch
from app.errors import BatchConflict
from app.members.members import SENDER
from app.postgres.database import transaction


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
