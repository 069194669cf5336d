"""*Send*, the first two steps: upload a list, and see the result of its check."""

from typing import Any

from flask import Response, redirect, render_template, url_for
from sqlalchemy import Connection
from wtforms import Field

from app.console import files, slow_work
from app.console.blueprints import Page, current_scope, pages, to_page
from app.console.caller import calling_member, form_id
from app.console.forms import say_beside
from app.console.send_forms import CheckAgainForm, ListForm
from app.console.slow_work import Busy, checked_page, refused_form, searches
from app.errors import Refused
from app.members.members import SENDER
from app.postgres.database import single_statement, transaction
from app.recipient_files.list_file import LEFT_OUT
from app.settings import settings
from app.uploads import uploads
from app.uploads.listed import lately_used
from app.uploads.sent_before import SentBefore, sent_before
from app.uploads.uploads import UploadRow

_EXAMPLE_HEADING = ("email", "amount", "reference", "label")
_EXAMPLE_ROWS = (
    ("ada@example.com", 100, "order-1001", "Spring campaign"),
    ("grace@example.com", 250, "order-1002", "Spring campaign"),
    ("alan@example.com", 50, "order-1003", ""),
)


@pages.form("/send", role=SENDER)
def send() -> Page:
    """Check a new list, and store it if it can be read."""
    form = ListForm()
    if not form.is_submitted():
        return _new_list(form)
    is_valid = form.validate()
    given = form.content()
    if not is_valid or given is None:
        return _new_list(form), 400
    content, name = given
    token = form_id()
    try:
        # The form's id is the list's token, so a form that is sent again leads to the same list.
        return checked_page(slow_work.keep(content, name, form.asked(), token=token), token)
    except (Busy, Refused) as error:
        say_beside(form.file if form.file.data else form.pasted, as_sentence(error.sentence))
        return refused_form(_new_list(form), error)


@pages.get("/send/example.xlsx", role=SENDER)
def example() -> Response:
    """Answer with a workbook of the columns that a list may have."""
    return files.workbook("points.xlsx", _EXAMPLE_HEADING, iter(_EXAMPLE_ROWS))


@pages.get("/send/<token>", role=SENDER)
def check(token: str) -> Page:
    with searches.turn(), transaction() as connection:
        found = get_list(connection, token)
        if found.sent_at is not None:
            return redirect(url_for("console.outcome", token=token))
        before = None if found.question else sent_before(connection, found)
    told = {"sheet": found.sheet, "column": found.column, "amount": str(found.amount or ""), "label": found.label}
    form = CheckAgainForm(formdata=None, data=told)
    return _checked(found, form, before)


@pages.post("/send/<token>", role=SENDER)
def check_again(token: str) -> Page:
    """Check a list again, with another column, amount or label."""
    with transaction() as connection:
        found = get_list(connection, token)
        if found.sent_at is not None:
            return to_page("outcome", token=token)
        content = uploads.content_of(connection, found.id)
    form = CheckAgainForm()
    _offer(form, found)
    if not form.validate() or not _is_answered(form, found):
        return _checked(found, form, None), 400
    # The columns of another sheet are others.
    column = form.column.data if form.sheet.data == found.sheet else None
    asked = form.asked(sheet=form.sheet.data, column=column)
    kept = {"sheets": (found.findings or {}).get("sheets", [])}
    if form.sheet.data == found.sheet:
        kept["choices"] = (found.findings or {}).get("choices", [])
    try:
        return checked_page(slow_work.keep_again(found, content, asked, kept), token)
    except (Busy, Refused) as error:
        say_beside(_field_of(form, found), as_sentence(error.sentence))
        return refused_form(_checked(found, form, None), error)


@pages.get("/send/<token>/bad-lines.csv", defaults={"kind": files.CSV})
@pages.get("/send/<token>/bad-lines.xlsx", defaults={"kind": files.XLSX}, role=SENDER)
def bad_lines(token: str, kind: str) -> Response:
    """Answer with a file of all bad lines with their own columns, which can be mended and sent as a separate list."""
    with transaction() as connection:
        found = get_list(connection, token)
        bad = uploads.bad_lines_of(connection, found.id)
    own = (found.findings or {}).get("heading", [])
    name = f"{found.name.rpartition('.')[0] or found.name}.left-out"
    rows = (_whole(line, len(own)) for line in bad)
    return files.file(kind, name, [*own, *LEFT_OUT], rows, lines=len(bad))


def _whole(line: dict[str, Any], width: int) -> list[str | int]:
    """Return a bad line as it was. Cells that do not fit the columns stand behind them: nobody is paid by accident."""
    cells: list[str] = line["cells"]
    own = (cells if line["fits"] else [])[:width]
    spare = cells[len(own) :] if not line["fits"] else []
    return [*own, *[""] * (width - len(own)), line["line"], line["reason"], *spare]


def get_list(connection: Connection, token: str, *, lock: bool = False) -> UploadRow:
    """Return a list of the member's organization, in the mode of the page.

    Raises:
        NotFound: the organization has no such list in this mode, or it was deleted.
    """
    return uploads.get(connection, token, current_scope(), lock=lock)


def as_sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _offer(form: CheckAgainForm, upload: UploadRow) -> None:
    """Give the form the sheets and the columns that may be meant."""
    findings = upload.findings or {}
    form.sheet.choices = [(name, title) for name, title in findings.get("sheets", [])]
    form.column.choices = [(place, title) for place, title, _ in findings.get("choices", [])]


def _field_of(form: CheckAgainForm, upload: UploadRow) -> Field:
    """Return the field that answers the open question."""
    return {uploads.SHEET: form.sheet, uploads.COLUMN: form.column}.get(upload.question or "", form.amount)


def _is_answered(form: CheckAgainForm, upload: UploadRow) -> bool:
    is_same_sheet = form.sheet.data == upload.sheet
    asks = upload.question == uploads.SHEET or (upload.question == uploads.COLUMN and is_same_sheet)
    if asks and _field_of(form, upload).data is None:
        say_beside(_field_of(form, upload), f"Choose the {upload.question}.")
        return False
    return True


def _new_list(form: ListForm) -> str:
    with transaction() as connection:
        organization = calling_member(connection).organization
        lately = lately_used(connection, current_scope())
    return render_template(
        "console/send.html", form=form, organization=organization, lately=lately, bytes_max=settings().body_bytes_max
    )


def _checked(upload: UploadRow, form: CheckAgainForm, before: SentBefore | None) -> str:
    _offer(form, upload)
    with single_statement() as connection:
        lately = lately_used(connection, upload.scope)
    return render_template(
        "console/check.html",
        lately=lately,
        upload=upload,
        findings=upload.findings or {},
        form=form,
        examples={place: cells for place, _, cells in (upload.findings or {}).get("choices", [])},
        before=before,
        kept_days=uploads.UNSENT_KEPT_DAYS,
    )
