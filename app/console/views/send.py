"""*Send*, in four steps: upload a list, see its check, see its cost and settle how it is issued, and issue it."""

from datetime import UTC, datetime, timedelta

from flask import redirect, render_template, url_for
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from werkzeug.datastructures import MultiDict
from wtforms import Field

from app.batches.batch import QUEUED
from app.batches.schedule import now_of
from app.console import sending, slow_work
from app.console.blueprints import Page, current_scope, pages, to_page
from app.console.caller import calling_member, form_id
from app.console.forms import say_beside, say_of_form
from app.console.send_forms import CheckAgainForm, IssueForm, ListForm, TermsForm
from app.console.sending import cost as cost_of
from app.console.slow_work import Busy, checked_page, refused_form, searches
from app.errors import NotFound, PointsError, Refused
from app.members.members import SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.postgres.database import is_locked_out, single_statement, snapshot, transaction
from app.settings import settings
from app.uploads import parts as upload_parts
from app.uploads import uploads
from app.uploads.listed import lately_used
from app.uploads.sent_before import SentBefore, sent_before
from app.uploads.uploads import UploadRow
from app.values.texts import as_sentence


@pages.form("/send", role=SENDER)
def send() -> Page:
    """Check a new list, and store it if it can be read."""
    form = ListForm()
    if not form.is_submitted():
        return _new_list(form)
    is_valid = form.validate()
    given = form.content()
    if given is None or not (is_valid or form.file.data):
        return _new_list(form), 400
    content, name = given
    token = form_id()
    try:
        # The form's id is the list's token, so a form that is sent again leads to the same list.
        steps = slow_work.keep(content, name, form.details(), token=token, faulty=form.faulty())
        return checked_page(steps, token)
    except (Busy, Refused) as error:
        say_beside(form.file if form.file.data else form.pasted, as_sentence(error.sentence))
        return refused_form(_new_list(form), error)


@pages.get("/send/<token>", role=SENDER)
def check(token: str) -> Page:
    with searches.turn(), snapshot() as connection:
        upload = get_list(connection, token)
        if upload.sent_at is not None:
            return redirect(url_for("console.outcome", token=token))
        before = None if upload.question else sent_before(connection, upload)
    _use(upload)
    kept = upload.details._asdict() | {"amount": str(upload.amount or "")}
    faulty = (upload.findings or {}).get("faulty", {})
    form = CheckAgainForm(formdata=MultiDict(faulty), data=kept)
    for name in faulty:
        form[name].validate(form)
    return _checked(upload, form, before)


@pages.post("/send/<token>", role=SENDER)
def check_again(token: str) -> Page:
    """Check a list again, with another column, amount or label."""
    with transaction() as connection:
        upload = get_list(connection, token)
        if upload.sent_at is not None:
            return to_page("outcome", token=token)
        content = uploads.content_of(connection, upload.id)
    form = CheckAgainForm()
    form.offer(upload.findings or {})
    if not form.validate() or not _is_answered(form, upload):
        return _checked(upload, form, None), 400
    details = form.details_of(upload)
    kept = {"sheets": (upload.findings or {}).get("sheets", [])}
    if form.sheet.data == upload.sheet:
        kept |= {name: (upload.findings or {}).get(name, []) for name in ("choices", "titles")}
    try:
        return checked_page(slow_work.keep_again(upload, content, details, kept), token)
    except (Busy, Refused) as error:
        say_beside(_field_of(form, upload), as_sentence(error.sentence))
        return refused_form(_checked(upload, form, None), error)


def get_list(connection: Connection, token: str, *, lock: bool = False) -> UploadRow:
    """Return a list of the member's organization, in the mode of the page.

    Raises:
        NotFound: the organization has no such list in this mode, or it was deleted.
    """
    return uploads.get(connection, token, current_scope(), lock=lock)


_USED_AGAIN_AFTER = timedelta(minutes=10)


def _use(upload: UploadRow) -> None:
    """Note that somebody stands on the page of an unsent list, so that it is not dropped."""
    if upload.used_at < datetime.now(UTC) - _USED_AGAIN_AFTER:
        with transaction() as connection:
            uploads.use(connection, upload.id)


def _field_of(form: CheckAgainForm, upload: UploadRow) -> Field:
    """Return the field that answers the open question."""
    return form[upload.question or uploads.AMOUNT]


def _is_answered(form: CheckAgainForm, upload: UploadRow) -> bool:
    is_same_sheet = form.sheet.data == upload.sheet
    asks = upload.question == uploads.SHEET or (
        upload.question in (uploads.HIDDEN_ROWS, uploads.COLUMN) and is_same_sheet
    )
    if asks and _field_of(form, upload).data is None:
        is_column = upload.question != uploads.HIDDEN_ROWS
        say_beside(_field_of(form, upload), f"Choose the {upload.question}." if is_column else "Choose one.")
        return False
    return True


def _new_list(form: ListForm) -> str:
    with snapshot() as connection:
        organization = calling_member(connection).organization
        lately = lately_used(connection, current_scope())
        dropped = uploads.next_dropped(connection, current_scope())
    return render_template(
        "console/send.html",
        form=form,
        organization=organization,
        lately=lately,
        bytes_max=settings().body_bytes_max,
        dropped=dropped,
        unsent_max=uploads.UNSENT_MAX,
    )


def _checked(upload: UploadRow, form: CheckAgainForm, before: SentBefore | None) -> str:
    form.offer(upload.findings or {})
    with single_statement() as connection:
        lately = lately_used(connection, upload.scope)
        repeated = upload_parts.repeated(connection, upload.id, amount=upload.amount)
    return render_template(
        "console/check.html",
        repeated=repeated,
        lately=lately,
        upload=upload,
        findings=upload.findings or {},
        form=form,
        examples={place: cells for place, _, cells in (upload.findings or {}).get("choices", [])},
        before=before,
        kept_days=uploads.UNSENT_KEPT_DAYS,
    )


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
        now = now_of(connection, current_scope())
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
        return _with_cost("console/confirm.html", token, refusal="Look at this page before you issue points.")
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
    queued = [acceptance.batch_id for acceptance in accepted or () if acceptance.status == QUEUED]
    if queued:
        assert upload.recipients is not None, "what is sent is checked"
        current_record().batch_id = queued[-1]
        drains.ask(Job(upload.organization_id, queued[-1], upload.recipients, current_record().trace_id))
    return to_page("outcome", token=token)


def _with_cost(template: str, token: str, *, refusal: str | None = None, terms: TermsForm | None = None) -> Page:
    with searches.turn(), snapshot() as connection:
        who, upload = calling_member(connection), get_list(connection, token)
        if upload.sent_at is not None:
            return to_page("outcome", token=token)
        if upload.question is not None:
            return to_page("check", f"Nothing was issued. {refusal}" if refusal else "", "bad", token=token)
        now = cost_of(connection, who, upload)
    _use(upload)
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
