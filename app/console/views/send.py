"""*Send*, the first two steps: upload a list, and see the result of its check."""

import csv
from io import StringIO

from flask import Response, redirect, render_template, url_for
from sqlalchemy import Connection
from werkzeug.wrappers import Response as AnyResponse

from app import organizations
from app.console import sending
from app.console.blueprints import current_member, is_sandbox, needs, pages
from app.console.downloads import save_as
from app.console.error_pages import refused_form
from app.console.forms import say_beside
from app.console.one_effect import form_id
from app.console.send_forms import CheckAgainForm, ListForm
from app.console.slow_work import Busy, list_checks
from app.errors import Refused
from app.members.members import SENDER
from app.postgres.database import single_statement, transaction
from app.recipient_files import for_spreadsheet
from app.settings import settings
from app.uploads import sent_before, uploads
from app.uploads.uploads import UploadRow

Page = AnyResponse | tuple[str, int] | str


@pages.get("/send")
@needs(SENDER)
def send() -> Page:
    return _new_list(ListForm())


@pages.post("/send")
@needs(SENDER)
def upload() -> Page:
    """Check a new list, and store it if it can be read."""
    form = ListForm()
    is_valid = form.validate()
    given = form.content()
    if not is_valid or given is None:
        return _new_list(form), 400
    content, name = given
    token = form_id()
    try:
        # The form's id is the list's token, so a form that is sent again leads to the same list.
        sending.keep(content, name, form.asked(), token=token)
    except (Busy, Refused) as error:
        say_beside(form.file if form.file.data else form.pasted, as_sentence(error.sentence))
        return refused_form(_new_list(form), error)
    return redirect(url_for("console.check", token=token), 303)


@pages.get("/send/<token>")
@needs(SENDER)
def check(token: str) -> Page:
    with transaction() as connection:
        found = get_list(connection, token)
        if found.sent_at is not None:
            return redirect(url_for("console.outcome", token=token))
        earlier = None if found.question else sent_before.sent_before(connection, found)
    told = {"column": found.column, "amount": str(found.amount or ""), "label": found.label}
    form = CheckAgainForm(formdata=None, data=told)
    return _checked(found, form, earlier)


@pages.post("/send/<token>")
@needs(SENDER)
def check_again(token: str) -> Page:
    """Check a list again, with another column, amount or label."""
    with transaction() as connection:
        found = get_list(connection, token)
        if found.sent_at is not None:
            return redirect(url_for("console.outcome", token=token), 303)
        content = uploads.content_of(connection, found.id)
    form = CheckAgainForm()
    form.column.choices = _choices(found)
    if not form.validate():
        return _checked(found, form, None), 400
    column = form.column.data
    if column is None and found.question == uploads.COLUMN:
        say_beside(form.column, "Choose the column.")
        return _checked(found, form, None), 400
    asked = form.asked(column)
    try:
        with list_checks.turn():
            judged, shown = sending.look_at(content, found.name, asked)
    except (Busy, Refused) as error:
        say_beside(form.column if found.question == uploads.COLUMN else form.amount, as_sentence(error.sentence))
        return refused_form(_checked(found, form, None), error)
    if judged == uploads.AMOUNT and found.question == uploads.AMOUNT:
        say_beside(form.amount, "Enter the points for each recipient.")
        return _checked(found, form, None), 400
    with transaction() as connection:
        if get_list(connection, token, lock=True).sent_at is None:
            shown = {"choices": _choices(found)} | shown
            uploads.judge(connection, found.id, asked, judged, shown)
    return redirect(url_for("console.check", token=token), 303)


@pages.get("/send/<token>/bad-lines.csv")
@needs(SENDER)
def bad_lines(token: str) -> Response:
    """Answer with a file of all bad lines, which can be corrected and sent as a separate list."""
    with transaction() as connection:
        bad = uploads.bad_lines_of(connection, get_list(connection, token).id)
    written = StringIO()
    rows = csv.writer(written)
    rows.writerow(("line", "content", "reason"))
    rows.writerows((line["line"], for_spreadsheet(line["email"]), line["reason"]) for line in bad)
    return save_as(Response(written.getvalue(), content_type="text/csv; charset=utf-8"), "bad-lines.csv")


def get_list(connection: Connection, token: str, *, lock: bool = False) -> UploadRow:
    """Return a list of the member's organization, in the mode of the page.

    Raises:
        NotFound: the organization has no such list in this mode, or it was deleted.
    """
    organization_id = current_member().organization_id
    return uploads.get(connection, token, organization_id=organization_id, sandbox=is_sandbox(), lock=lock)


def as_sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _choices(upload: UploadRow) -> list[tuple[int, str]]:
    return [(place, title) for place, title in (upload.findings or {}).get("choices", [])]


def _new_list(form: ListForm) -> str:
    with single_statement() as connection:
        organization = organizations.get(connection, current_member().organization_id, sandbox=is_sandbox())
    return render_template(
        "console/send.html", form=form, organization=organization, bytes_max=settings().body_bytes_max
    )


def _checked(upload: UploadRow, form: CheckAgainForm, earlier: sent_before.EarlierSend | None) -> str:
    form.column.choices = _choices(upload)
    return render_template(
        "console/check.html",
        upload=upload,
        findings=upload.findings or {},
        form=form,
        earlier=earlier,
        kept_days=uploads.UNSENT_KEPT_DAYS,
    )
