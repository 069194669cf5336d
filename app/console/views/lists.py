"""*Lists*: those not sent, and the sent ones: progress, the outcome of each line as a file, and the same list again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any

from flask import Response, flash, redirect, render_template, request, url_for
from sqlalchemy import Connection

from app.batches import payloads
from app.batches import read as batches
from app.batches.payloads import sums_of
from app.batches.read import AWAITING_APPROVAL, ISSUED, QUEUED, SCHEDULED, BatchRow
from app.console import files, slow_work
from app.console.blueprints import Page, current_scope, pages
from app.console.caller import form_id
from app.console.files import save_as
from app.console.slow_work import Busy, checked_page
from app.console.views.batches import get_batch
from app.console.views.send import as_sentence, get_list
from app.errors import NotFound, Refused
from app.members.members import SENDER, names_of
from app.postgres.database import transaction
from app.uploads import listed, sent_before, uploads
from app.uploads import parts as upload_parts
from app.uploads.sent_before import NewList
from app.uploads.uploads import UNSENT_KEPT_DAYS, UploadRow
from app.values.ids import require_id

_ROWS = 50


@pages.get("/lists")
def lists() -> str:
    before = request.args.get("before", type=int)
    if before is not None:
        require_id("list", before)
    with transaction() as connection:
        waiting = [] if before else listed.unsent(connection, current_scope())
        rows = listed.sent(connection, current_scope(), before=before, at_most=_ROWS + 1)
    return render_template(
        "console/lists.html",
        unsent=waiting,
        sent=rows[:_ROWS],
        is_first=before is None,
        older=rows[_ROWS - 1].id if len(rows) > _ROWS else None,
        kept_days=UNSENT_KEPT_DAYS,
    )


@pages.get("/send/<token>/outcome")
def outcome(token: str) -> Page:
    with transaction() as connection:
        upload = get_list(connection, token)
        if upload.sent_at is None:
            return redirect(url_for("console.check", token=token))
        rows = batches_of(connection, upload)
        sender = names_of(connection, [upload.member_id])[upload.member_id]
        sums = sums_of(connection, [row.id for row in rows], organization_id=upload.organization_id)
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
        unpaid=sum(row.recipient_count - row.debited_count for row in rows if row.debited_count is not None),
        sums=sums,
    )


@pages.get("/send/<token>/outcome.csv", defaults={"kind": files.CSV})
@pages.get("/send/<token>/outcome.xlsx", defaults={"kind": files.XLSX})
def outcome_file(token: str, kind: str) -> Response:
    with transaction() as connection:
        upload = get_list(connection, token)
        rows = batches_of(connection, upload)
    if upload.sent_at is None:
        raise NotFound("list", token)
    return of_list(upload, rows, kind)


def batches_of(connection: Connection, upload: UploadRow) -> list[BatchRow]:
    """Return the batches of a list in order; none until it is sent."""
    return [batches.get(connection, one, **upload.scope._asdict()) for one in upload.batch_ids or ()]


_HEADING = (
    *("line", "email", "reference", "label", "amount"),
    *("state", "reversed", "transaction_id", "batch_id", "reason"),
)
_Row = tuple[Any, ...]
_REASONS = {
    batches.UNPAID: "the balance was too low",
    batches.HELD: "waits for an account with this address",
    batches.QUEUED: "not issued yet",
    batches.SCHEDULED: "not issued yet",
    batches.AWAITING_APPROVAL: "awaits an approval",
    batches.CANCELLED: "the batch was cancelled",
    batches.REJECTED: "the batch was rejected",
    batches.REFUSED: "the organization may not issue",
}


def of_batch(batch: BatchRow, kind: str) -> Response:
    """Answer with the outcome of one batch; `line` is the recipient's place in it, from 1."""

    def rows() -> Iterator[_Row]:
        with transaction() as connection:
            transactions = batches.transactions_of(connection, batch.id, organization_id=batch.organization_id)
        yield from _issued(batch, range(1, len(transactions) + 1), transactions)

    return files.file(kind, f"batch-{batch.id}", _HEADING, rows(), lines=batch.recipient_count)


def of_list(upload: UploadRow, batch_rows: Sequence[BatchRow], kind: str) -> Response:
    """Answer with the outcome of each line of a list, in the order of the list.

    Once the lines are no longer kept, it has what their batches have: each transaction, without its line.
    """

    def rows() -> Iterator[_Row]:
        with transaction() as connection:
            lines = uploads.bad_lines_of(connection, upload.id)
        empty = ("",) * 3
        bad = ((of["line"], of["email"], *empty, "left out", *empty, of["reason"]) for of in lines)
        yield from merge(_of_parts(upload, batch_rows), bad, key=itemgetter(0))  # By line.

    lines = sum(batch.recipient_count for batch in batch_rows) + (upload.findings or {}).get("bad", 0)
    return files.file(kind, f"{upload.name.removesuffix('.csv')}.result", _HEADING, rows(), lines=lines)


def of_new_list(new: NewList) -> Response:
    """Answer with a list that can be uploaded, such as that of the unpaid."""
    marked = files.MARK.encode() + new.content
    return save_as(Response(marked, content_type="text/csv; charset=utf-8"), f"{new.name.removesuffix('.csv')}.csv")


def _of_parts(upload: UploadRow, batch_rows: Sequence[BatchRow]) -> Iterator[_Row]:
    for number, batch in enumerate(batch_rows, 1):
        with transaction() as connection:  # One for each part, so that a slow reader holds no connection.
            part = upload_parts.find(connection, upload.id, number)
            is_issued, its_organization = batch.status == ISSUED, {"organization_id": batch.organization_id}
            transactions = batches.transactions_of(connection, batch.id, **its_organization) if is_issued else []
        if is_issued:
            yield from _issued(batch, [""] * len(transactions) if part is None else part.lines, transactions)
            continue
        for line, item in zip(part.lines, part.items, strict=True) if part else ():
            amount, label = item.amount or upload.amount, item.label or upload.label
            yield (
                *(line, item.email, item.reference or ""),
                *(label or "", amount, batch.status, 0, "", batch.id, _REASONS[batch.status]),
            )


def _issued(
    batch: BatchRow, lines: Iterable[int | str], transactions: Sequence[batches.TransactionRow]
) -> Iterator[_Row]:
    shown = payloads.transaction_payloads((batch, row) for row in transactions)
    for line, body in zip(lines, shown, strict=True):
        yield (
            *(line, body["email"], body["reference"] or ""),
            *(body["label"] or "", body["amount"], body["state"], body["reversed"], body["id"]),
            *(batch.id, _REASONS.get(body["state"], "")),
        )


@pages.post("/send/<token>/again", role=SENDER)
def copy_list(token: str) -> Page:
    """Make a new list of a sent one."""

    def made(connection: Connection) -> NewList:
        upload = get_list(connection, token)
        if upload.sent_at is None:
            raise NotFound("sent list", token)
        return sent_before.copy_of(connection, upload)

    return _made(made, or_back_to=url_for("console.outcome", token=token))


@pages.post("/send/<token>/unpaid", role=SENDER)
def list_unpaid(token: str) -> Page:
    """Make a new list of those recipients of a sent one who were not paid."""
    return _made(lambda connection: _unpaid(connection, token), or_back_to=url_for("console.outcome", token=token))


@pages.get("/send/<token>/unpaid.csv")
def unpaid_file(token: str) -> Response:
    with transaction() as connection:
        return of_new_list(_unpaid(connection, token))


@pages.get("/batches/<int:batch_id>/outcome.csv", defaults={"kind": files.CSV})
@pages.get("/batches/<int:batch_id>/outcome.xlsx", defaults={"kind": files.XLSX})
def batch_file(batch_id: int, kind: str) -> Response:
    with transaction() as connection:
        batch = get_batch(connection, batch_id)
    if batch.status != ISSUED:
        raise NotFound("outcome yet of batch", batch_id)
    return of_batch(batch, kind)


@pages.post("/batches/<int:batch_id>/unpaid", role=SENDER)
def list_unpaid_of_batch(batch_id: int) -> Page:
    """Make a new list of those recipients of a batch who were not paid."""

    def made(connection: Connection) -> NewList:
        batch = get_batch(connection, batch_id)
        return sent_before.unpaid_of(connection, [batch], f"batch {batch_id}")

    return _made(made, or_back_to=url_for("console.show_batch", batch_id=batch_id))


def _unpaid(connection: Connection, token: str) -> NewList:
    upload = get_list(connection, token)
    return sent_before.unpaid_of(connection, batches_of(connection, upload), upload.name)


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
