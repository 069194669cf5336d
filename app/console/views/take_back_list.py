"""Taking back a whole list."""

from typing import Any

from flask import render_template

from app.actions import log as actions
from app.console.blueprints import Page, current_member, pages, to_page
from app.console.caller import calling_member, change, record
from app.console.deciding import target_of
from app.console.forms import say_why
from app.console.send_forms import TakeBackForm
from app.console.slow_work import searches
from app.errors import InvalidRequest, PointsError
from app.members.members import SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.postgres.database import snapshot
from app.reversals.several import OtherPoints, accept_all, left_of, seen_of
from app.values.numbers import counted


@pages.form("/send/<token>/take-back", role=SENDER, asks=True)
def take_back_list(**of: Any) -> Page:
    """Queue the reversals, if the points that would come back are those that the page showed."""
    form = TakeBackForm()
    if not form.validate_on_submit():
        return _asking(of, form)
    try:
        with searches.turn(), change() as connection:
            who, batch_rows = calling_member(connection), target_of(connection, of).batches
            reversal_ids = accept_all(connection, who, batch_rows, reason=form.reason.data, seen=form.seen.data or "")
            for reversal_id in reversal_ids:
                record(connection, actions.REVERSED, reversal_id, form.reason.data)
    except (OtherPoints, InvalidRequest) as error:
        say_why(form, error)
        return _asking(of, form)
    drains.ask(Job(current_member().organization_id, None, None, current_record().trace_id))
    told = f"{counted(len(reversal_ids), 'batch', 'es')} of this list will be taken back in a moment."
    return to_page("outcome", told, **of)


def _asking(of: dict[str, Any], form: TakeBackForm) -> Page:
    """Return the page of the form; with faults in it, as an answer to it."""
    with searches.turn(), snapshot() as connection:
        target = target_of(connection, of)
        try:
            left = left_of(connection, calling_member(connection), target.batches)
        except PointsError as error:
            return target.page(error.sentence, "bad")
    if not left:
        return target.page("Nothing is left of this list that could be taken back.", "bad")
    form.seen.data = seen_of(left)
    sums = {
        name: sum(getattr(figures, name) for _, figures in left)
        for name in ("recoverable", "held_points", "credited", "held")
    }
    page = render_template("console/take_back_list.html", target=target, left=left, sums=sums, form=form)
    return (page, 400) if form.is_submitted() else page
