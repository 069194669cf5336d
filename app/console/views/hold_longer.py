"""Holding the points of a transaction for longer."""

from flask import flash, redirect, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from app.actions import log as actions
from app.batches import payloads
from app.batches.read import HELD
from app.console.blueprints import current_zone, needs, pages
from app.console.caller import calling_member, record_action
from app.console.faults import in_words
from app.console.forms import say_beside
from app.console.moment_form import MomentForm
from app.errors import CannotExtend, InvalidRequest
from app.ledger.returns import NotLater, extend
from app.members.members import SENDER
from app.pages import transaction_pages
from app.postgres.database import transaction
from app.values.ids import batch_and_position
from app.values.timestamps import parse_timestamp
from app.values.zones import ZONE_OF_ALL, moment_in

Page = AnyResponse | tuple[str, int] | str


@pages.get("/transactions/<int:transaction_id>/hold")
@needs(SENDER)
def ask_to_hold(transaction_id: int) -> Page:
    return _asking(transaction_id, None)


@pages.post("/transactions/<int:transaction_id>/hold")
@needs(SENDER)
def hold_longer(transaction_id: int) -> Page:
    """Move the end of the hold, or say why it cannot be moved. The same form sent again changes nothing."""
    form = MomentForm()
    until = form.moment() if form.validate() else None
    if until is None:
        return _asking(transaction_id, form)
    try:
        with transaction() as connection:
            who = calling_member(connection)
            organization_id = who.organization.id
            if extend(connection, transaction_id, until, organization_id=organization_id, sandbox=who.sandbox):
                detail = f"until {moment_in(ZONE_OF_ALL, until)}"
                record_action(connection, actions.EXTENDED, transaction_id, sandbox=who.sandbox, detail=detail)
        flash(f"The points are held until {moment_in(current_zone(), until)}.")
    except NotLater:  # The page shows the end that it has, in the member's zone.
        say_beside(form.day, "The end must be later than it is.")
        return _asking(transaction_id, form)
    except InvalidRequest as error:
        say_beside(form.day, in_words(error.faults["held_until"][0], "The end"))
        return _asking(transaction_id, form)
    except CannotExtend as error:
        flash(error.sentence, "bad")
    return _to_batch(transaction_id)


def _asking(transaction_id: int, form: MomentForm | None) -> Page:
    """Return the page of the form; with faults in it, as an answer to it."""
    with transaction() as connection:
        who = calling_member(connection)
        row = transaction_pages.get(
            connection, transaction_id, organization_id=who.organization.id, sandbox=who.sandbox
        )
    [found] = payloads.transaction_payloads([row])
    if found["state"] != HELD or found["held_until"] is None:
        flash("These points are not held, or held for ever: there is no end to move.", "bad")
        return _to_batch(transaction_id)
    now = MomentForm.shown(parse_timestamp(found["held_until"]))
    shown = form or MomentForm(formdata=None, data=now)
    page = render_template("console/hold_longer.html", found=found, form=shown)
    return page if form is None else (page, 400)


def _to_batch(transaction_id: int) -> AnyResponse:
    batch_id, _ = batch_and_position(transaction_id)
    return redirect(url_for("console.show_batch", batch_id=batch_id), 303)
