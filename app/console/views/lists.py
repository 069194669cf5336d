"""*Lists*: those not sent, and the sent ones: progress, the outcome of each line as a file, and the same list again."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from flask import Response, flash, redirect, render_template, request, url_for
from sqlalchemy import Connection

from app.batches import approval
from app.batches.batch import AWAITING_APPROVAL, NEVER_ISSUED, QUEUED, SCHEDULED, Batch, batches
from app.batches.recipients import recipients_of_all
from app.console import files, slow_work
from app.console.blueprints import Page, current_member, current_scope, pages, to_page
from app.console.caller import authors_of, calling_member, change, form_id
from app.console.forms import amount_of
from app.console.slow_work import Busy, checked_page
from app.console.views.batches import REVERSALS_SHOWN, TRANSACTIONS_SHOWN, get_batch
from app.console.views.send import get_list
from app.errors import NotFound, Refused
from app.members.members import APPROVER, SENDER, names_of
from app.postgres.database import single_statement, snapshot, transaction
from app.recipient_files.list_file import LEFT_OUT
from app.reversals.reversal import asked_of, of_batches
from app.reversals.sums import sums_of
from app.uploads import listed, sent_before, uploads
from app.uploads.sent_before import NewList
from app.uploads.uploads import UNSENT_KEPT_DAYS, UploadRow
from app.values.ids import require_id
from app.values.texts import as_sentence

_ROWS = 50


@pages.get("/lists")
def lists() -> str:
    before = request.args.get("before", type=int)
    if before is not None:
        require_id("list", before)
    with snapshot() as connection:
        waiting = [] if before else listed.unsent(connection, current_scope())
        rows = listed.sent(connection, current_scope(), before=before, at_most=_ROWS + 1)
    return render_template(
        "console/lists.html",
        unsent=waiting,
        sent=rows[:_ROWS],
        is_first=before is None,
        older=rows[_ROWS - 1].id if len(rows) > _ROWS else None,
        kept=timedelta(days=UNSENT_KEPT_DAYS),
    )


@pages.get("/send/<token>/outcome")
def outcome(token: str) -> Page:
    first = (amount_of(request.args.get("from"), digits_max=8) or 1) - 1  # The first place on the page, from 0.
    with snapshot() as connection:
        upload = get_list(connection, token)
        if upload.sent_at is None:
            return redirect(url_for("console.check", token=token))
        rows = batches_of(connection, upload)
        may_answer = current_member().may(APPROVER) and not approval.is_own(
            connection, calling_member(connection), rows[0]
        )
        after = _after_issue(connection, upload, rows)
        recipients = recipients_of_all(connection, rows, first=first, at_most=TRANSACTIONS_SHOWN)
        sender = names_of(connection, [upload.member_id])[upload.member_id]
    return render_template(
        "console/outcome.html",
        upload=upload,
        sender=sender,
        parts_of_list=rows,
        final=sum(row.is_final for row in rows),
        done=sum(row.recipient_count for row in rows if row.is_final),
        waiting=sum(row.status == QUEUED for row in rows),
        scheduled=[row for row in rows if row.status == SCHEDULED],
        awaiting=sum(row.status == AWAITING_APPROVAL for row in rows),
        debited=sum(row.debited_count or 0 for row in rows),
        points=sum(row.debited_amount or 0 for row in rows),
        unpaid=sum(row.recipient_count - (row.debited_count or 0) for row in rows if row.is_final),
        may_answer=may_answer,
        **after,
        recipients=recipients,
        first=first,
        page_size=TRANSACTIONS_SHOWN,
        ended=sorted({row.status for row in rows}) if all(row.status in NEVER_ISSUED for row in rows) else [],
    )


def _after_issue(connection: Connection, upload: UploadRow, rows: Sequence[Batch]) -> dict[str, Any]:
    """Return what the page of a sent list shows of its transactions, and what was taken back of them."""
    ids, of = [row.id for row in rows], {"organization_id": upload.organization_id}
    reversed_by = of_batches(connection, ids, upload.scope, at_most=REVERSALS_SHOWN)
    return {
        "sums": sums_of(connection, ids, **of),
        "reversals": reversed_by,
        "authors": authors_of(connection, reversed_by),
        "asked": asked_of(connection, [reversal.id for reversal in reversed_by], **of),
    }


@pages.get("/send/<token>/outcome.csv", defaults={"kind": files.CSV})
@pages.get("/send/<token>/outcome.xlsx", defaults={"kind": files.XLSX})
def outcome_file(token: str, kind: str) -> Response:
    with snapshot() as connection:
        upload = get_list(connection, token)
        rows = batches_of(connection, upload)
    if upload.sent_at is None:
        raise NotFound("list", token)
    return files.of_list(upload, rows, kind)


def batches_of(connection: Connection, upload: UploadRow) -> list[Batch]:
    """Return the batches of a list in order; none until it is sent."""
    return [batches.get(connection, batch_id, upload.scope) for batch_id in upload.batch_ids or ()]


@pages.post("/send/<token>/delete", role=SENDER, deletes=True)
def delete_list(token: str) -> Page:
    """Delete a list that is not sent, for the member who has uploaded it."""
    with change() as connection:
        upload = get_list(connection, token, lock=True)
        if upload.sent_at is not None:
            return to_page("outcome", "The list was sent meanwhile, so it stays.", "bad", token=token)
        if upload.member_id != current_member().id:
            return to_page("check", "Only who has uploaded a list can delete it.", "bad", token=token)
        uploads.delete(connection, upload.id)
    return to_page("lists", f"The list {upload.name} is deleted.")


@pages.post("/send/<token>/again", role=SENDER)
def copy_list(token: str) -> Page:
    """Make a new list of a list that was sent."""

    def new_list(connection: Connection) -> NewList:
        upload = get_list(connection, token)
        if upload.sent_at is None:
            raise NotFound("sent list", token)
        return sent_before.copy_of(connection, upload)

    return _made(new_list, or_back_to=url_for("console.outcome", token=token))


@pages.post("/send/<token>/unpaid", role=SENDER)
def list_unpaid(token: str) -> Page:
    """Make a new list of those recipients of a sent list who were not paid."""
    return _made(lambda connection: _unpaid(connection, token), or_back_to=url_for("console.outcome", token=token))


@pages.get("/send/<token>/unpaid.csv")
def unpaid_file(token: str) -> Response:
    with snapshot() as connection:
        return files.of_new_list(_unpaid(connection, token, is_file=True))


@pages.get("/batches/<int:batch_id>/outcome.csv", defaults={"kind": files.CSV})
@pages.get("/batches/<int:batch_id>/outcome.xlsx", defaults={"kind": files.XLSX})
def batch_file(batch_id: int, kind: str) -> Response:
    with single_statement() as connection:
        batch = get_batch(connection, batch_id)
    return files.of_batch(batch, kind)


@pages.post("/batches/<int:batch_id>/unpaid", role=SENDER)
def list_unpaid_of_batch(batch_id: int) -> Page:
    """Make a new list of those recipients of a batch who were not paid."""

    def new_list(connection: Connection) -> NewList:
        batch = get_batch(connection, batch_id)
        return sent_before.unpaid_of(connection, [batch], f"batch {batch_id}")

    return _made(new_list, or_back_to=url_for("console.show_batch", batch_id=batch_id))


def _unpaid(connection: Connection, token: str, *, is_file: bool = False) -> NewList:
    upload = get_list(connection, token)
    return sent_before.unpaid_of(connection, batches_of(connection, upload), upload.name, is_file=is_file)


def _made(make: Callable[[Connection], NewList], *, or_back_to: str) -> Page:
    """Keep a new list and go on to its check. The same form sent again leads to the same list."""
    with transaction() as connection:
        try:
            new = make(connection)
        except Refused as error:
            flash(error.sentence, "bad")
            return redirect(or_back_to, 303)
    token = form_id()
    try:
        return checked_page(slow_work.keep(*new, token=token), token)
    except (Busy, Refused) as error:
        flash(as_sentence(error.sentence), "bad")
        return redirect(or_back_to, 303)


_EXAMPLE_HEADING = ("email", "amount", "reference", "label")
_EXAMPLE_ROWS = (
    ("ada@example.com", 100, "order-1001", "Spring campaign"),
    ("grace@example.com", 250, "order-1002", "Spring campaign"),
    ("alan@example.com", 50, "order-1003", ""),
)


@pages.get("/send/example.xlsx", role=SENDER)
def example() -> Response:
    """Answer with a workbook of the columns that a list may have."""
    return files.workbook("points.xlsx", _EXAMPLE_HEADING, iter(_EXAMPLE_ROWS))


@pages.get("/send/<token>/bad-lines.csv", defaults={"kind": files.CSV})
@pages.get("/send/<token>/bad-lines.xlsx", defaults={"kind": files.XLSX}, role=SENDER)
def bad_lines(token: str, kind: str) -> Response:
    """Answer with a file of all bad lines with their own columns, which can be mended and sent as a separate list."""
    with snapshot() as connection:
        upload = get_list(connection, token)
        bad = uploads.bad_lines_of(connection, upload.id)
    own = (upload.findings or {}).get("heading", [])
    name = f"{upload.name.rpartition('.')[0] or upload.name}.left-out"
    rows = (_whole(line, len(own)) for line in bad)
    return files.file(kind, name, [*own, *LEFT_OUT], rows, lines=len(bad))


def _whole(line: dict[str, Any], width: int) -> list[str | int]:
    """Return a bad line as it was. Cells that do not fit the columns stand behind them: nobody is paid by accident."""
    cells: list[str] = line["cells"]
    own = (cells if line["fits"] else [])[:width]
    spare = cells[len(own) :] if not line["fits"] else []
    return [*own, *[""] * (width - len(own)), line["line"], line["reason"], *spare]
