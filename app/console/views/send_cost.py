"""*Send*, the last two steps: the cost of a list and how it is to be issued, and issuing it."""

from flask import render_template
from sqlalchemy.exc import DBAPIError

from app.batches.read import QUEUED
from app.batches.schedule import now_of
from app.console import sending
from app.console.blueprints import Page, current_scope, pages, to_page
from app.console.caller import calling_member
from app.console.forms import say_of_form
from app.console.send_forms import IssueForm, TermsForm
from app.console.sending import cost as cost_of
from app.console.slow_work import searches
from app.console.views.send import get_list
from app.errors import NotFound, PointsError
from app.members.members import SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.postgres.database import is_locked_out, transaction
from app.uploads import uploads

# Another request has locked the list for longer than a statement waits.
_BUSY = "Another window is sending this list now. Reload this page soon: it will show the outcome."


@pages.form("/send/<token>/cost", role=SENDER)
def cost(token: str) -> Page:
    """Keep when the list is to be issued, and whether only to all, and go on to the last step."""
    form = TermsForm()
    if not form.is_submitted():
        return _with_cost("console/cost.html", token)
    is_valid = form.validate()
    with transaction() as connection:
        now = now_of(connection, **current_scope()._asdict())
    terms = form.terms(now) if is_valid else None
    if terms is None:
        page = _with_cost("console/cost.html", token, terms=form)
        return (page, 400) if isinstance(page, str) else page
    with transaction() as connection:
        upload = get_list(connection, token, lock=True)
        if upload.sent_at is None:
            uploads.settle(connection, upload.id, terms)
    return to_page("confirm", token=token)


@pages.form("/send/<token>/confirm", role=SENDER)
def confirm(token: str) -> Page:
    """Accept the list. If it is sent twice at once, the second request shows the outcome of the first."""
    form = IssueForm()
    if not form.is_submitted():
        return _with_cost("console/confirm.html", token)
    if not form.validate():
        return _with_cost("console/confirm.html", token, refusal=sending.ListChanged().sentence)
    try:
        with transaction() as connection:
            upload = get_list(connection, token, lock=True)
            who = calling_member(connection)
            accepted = sending.issue(connection, who, upload, seen=form.seen.data, is_meant=bool(form.again.data))
    except NotFound:
        raise
    except PointsError as error:
        return _with_cost("console/confirm.html", token, refusal=error.sentence)
    except DBAPIError as error:
        if not is_locked_out(error):
            raise
        return _with_cost("console/confirm.html", token, refusal=_BUSY)
    queued = [one.batch_id for one in accepted or () if one.status == QUEUED]
    if queued:
        assert upload.recipients is not None, "what is sent is checked"
        current_record().batch_id = queued[-1]
        drains.ask(Job(upload.organization_id, queued[-1], upload.recipients, current_record().trace_id))
    return to_page("outcome", token=token)


def _with_cost(template: str, token: str, *, refusal: str | None = None, terms: TermsForm | None = None) -> Page:
    with searches.turn(), transaction() as connection:
        who, upload = calling_member(connection), get_list(connection, token)
        if upload.sent_at is not None:
            return to_page("outcome", token=token)
        if upload.question is not None:
            return to_page("check", f"Nothing was issued. {refusal}" if refusal else "", "bad", token=token)
        now = cost_of(connection, who, upload)
    form = IssueForm(formdata=None, seen=now.seen)
    if refusal is not None:
        say_of_form(form, f"Nothing was issued. {refusal}")
    page = render_template(
        template,
        upload=upload,
        organization=who.organization,
        now=now,
        verdict=now.verdict,
        refusal=refusal,
        form=form,
        terms=terms or TermsForm(formdata=None, data=TermsForm.of(upload)),
    )
    return page if refusal is None else (page, 409)
