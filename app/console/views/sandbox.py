"""*Sandbox*: its clock and its balance, which admins set by hand to try what comes later."""

from datetime import UTC, datetime

from flask import render_template
from werkzeug.exceptions import NotFound

from app import organizations
from app.actions import log as actions
from app.batches.schedule import now_of
from app.console.blueprints import Page, current_scope, current_zone, pages, to_page
from app.console.caller import change, record
from app.console.forms import amount_of, say_beside
from app.console.send_forms import MomentForm, RefillForm
from app.errors import InvalidRequest, RefillTooLarge
from app.ledger import refill
from app.ledger import sandbox as clock
from app.members.members import ADMIN
from app.postgres.database import snapshot
from app.scope import Scope
from app.values.numbers import counted
from app.values.zones import ZONE_OF_ALL, moment_in


@pages.get("/sandbox", role=ADMIN)
def sandbox() -> str:
    return _page()


@pages.post("/sandbox/clock", role=ADMIN)
def set_sandbox_clock() -> Page:
    scope, form = _scope(), MomentForm()
    now = form.moment() if form.validate() else None
    try:
        if now is not None:
            with change() as connection:
                clock.set_clock(connection, scope.organization_id, now)
                record(connection, actions.CLOCK_SET, scope.organization_id, f"to {moment_in(ZONE_OF_ALL, now)}")
            return to_page("sandbox", f"The clock of the sandbox is set to {moment_in(current_zone(), now)}.")
    except InvalidRequest:  # The time is before that of the sandbox, or too far ahead.
        latest = moment_in(current_zone(), datetime.now(UTC) + clock.AHEAD_MAX)
        say_beside(form.day, f"The clock goes forwards only, and not beyond {latest}. A reset puts it back.")
    return _page(form=form), 400


@pages.post("/sandbox/refill", role=ADMIN)
def refill_sandbox() -> Page:
    scope, form = _scope(), RefillForm()
    amount = amount_of(form.amount.data) if form.validate() else None
    try:
        if amount is not None:
            with change() as connection:
                refill.refill(connection, scope.organization_id, amount, sandbox=True)
            return to_page("sandbox", f"{counted(amount, 'point')} were put into the balance of the sandbox.")
    except RefillTooLarge as error:
        say_beside(form.amount, error.sentence)
    return _page(refill_form=form), 400


@pages.post("/sandbox/reset", role=ADMIN)
def reset_sandbox() -> Page:
    scope = _scope()
    with change() as connection:
        balance = refill.reset_sandbox(connection, scope.organization_id)
        record(connection, actions.SANDBOX_RESET, scope.organization_id)
    return to_page("sandbox", f"The balance is {counted(balance, 'point')} again, and the clock is put right.")


def _scope() -> Scope:
    """Return the sandbox of the page; in live mode there is no such page."""
    if not current_scope().sandbox:
        raise NotFound
    return current_scope()


def _page(*, form: MomentForm | None = None, refill_form: RefillForm | None = None) -> str:
    scope = _scope()
    with snapshot() as connection:
        now, organization = now_of(connection, scope), organizations.get(connection, scope)
    return render_template(
        "console/sandbox.html",
        form=form or MomentForm(formdata=None, data=MomentForm.fields_of(now)),
        refill_form=refill_form or RefillForm(formdata=None),
        balance=organization.balance,
        now=now,
        days_max=clock.AHEAD_MAX.days,
    )
