"""Taking back a whole list: a reversal for each of its batches that has points left, all accepted together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from flask import render_template
from sqlalchemy import Connection

from app.actions import log as actions
from app.api_keys import Caller
from app.batches.batch import ISSUED
from app.console.blueprints import Page, current_member, pages, to_page
from app.console.caller import calling_member, change, record
from app.console.deciding import Target, target_of
from app.console.forms import say_of_form
from app.console.send_forms import TakeBackForm
from app.console.slow_work import searches
from app.console.views.take_back import Choice
from app.errors import PointsError, Refused
from app.members.members import SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.postgres import locks
from app.postgres.database import snapshot
from app.reversals import accept as reversal_acceptance
from app.reversals.request import Recoverable, recoverable
from app.values.numbers import counted

_WHOLE = Choice((), None)


class Left(NamedTuple):
    """A batch of which points can be taken back."""

    batch_id: int
    figures: Recoverable


@pages.form("/send/<token>/take-back", role=SENDER, asks=True)
def take_back_list(**of: Any) -> Page:
    """Queue the reversals, if the points that would come back are those that the page showed."""
    form = TakeBackForm()
    if not form.validate_on_submit():
        return _asking(of, form)
    try:
        with searches.turn(), change() as connection:
            count = _accept(connection, of, form)
    except Refused as error:
        say_of_form(form, error.sentence)
        return _asking(of, form)
    drains.ask(Job(current_member().organization_id, None, None, current_record().trace_id))
    return to_page("outcome", f"{counted(count, 'batch', 'es')} of this list will be taken back in a moment.", **of)


def _accept(connection: Connection, of: dict[str, Any], form: TakeBackForm) -> int:
    """Accept the reversals, and return how many; until the commit nobody else accepts one."""
    who = calling_member(connection)
    locks.wait_for(connection, locks.Kind.REVERSALS, who.organization.id)
    left = _left_of(connection, who, target_of(connection, of))
    if not left or _seen(left) != form.seen.data:
        raise Refused(
            "Nothing was taken back, because other points can be taken back than the page showed: look at the figures"
            " below, then press the button again."
        )
    reason = form.reason.data
    requests = [_WHOLE.request(batch_id, reason, expected=figures.recoverable) for batch_id, figures in left]
    accepted = [reversal_acceptance.accept(connection, who, request, None) for request in requests]
    more = f"with {counted(len(left) - 1, 'more reversal')} of its list, " if len(left) > 1 else ""
    record(connection, actions.REVERSED, accepted[0].reversal_id, f"{more}{reason}"[: actions.DETAIL_LENGTH_MAX])
    return len(left)


def _left_of(connection: Connection, who: Caller, target: Target) -> list[Left]:
    """Return the batches of a list of which points can be taken back, in its order.

    Raises:
        PointsError: the organization may not take any back, or its balance cannot hold them.
    """
    left = []
    for batch in target.having([ISSUED]):
        request = _WHOLE.request(batch.id, "-")
        figures = recoverable(connection, request, who.organization, batch_status=batch.status)
        if figures.refusal is not None and not isinstance(figures.refusal, Refused):
            raise figures.refusal
        if figures.recoverable:
            left.append(Left(batch.id, figures))
    return left


def _seen(left: Sequence[Left]) -> str:
    return " ".join(f"{batch_id}:{figures.recoverable}:{figures.held_points}" for batch_id, figures in left)


def _asking(of: dict[str, Any], form: TakeBackForm) -> Page:
    """Return the page of the form; with faults in it, as an answer to it."""
    with searches.turn(), snapshot() as connection:
        target = target_of(connection, of)
        try:
            left = _left_of(connection, calling_member(connection), target)
        except PointsError as error:
            return target.page(error.sentence, "bad")
    if not left:
        return target.page("Nothing is left of this list that could be taken back.", "bad")
    form.seen.data = _seen(left)
    sums = {
        name: sum(getattr(figures, name) for _, figures in left)
        for name in ("recoverable", "held_points", "credited", "held")
    }
    page = render_template("console/take_back_list.html", target=target, left=left, sums=sums, form=form)
    return (page, 400) if form.is_submitted() else page
