"""What is decided before the issue, of a batch or of a whole list at once: approve, reject, cancel, move."""

from collections.abc import Sequence
from typing import Any

from flask import render_template, request
from sqlalchemy import Connection

from app.actions import log as actions
from app.api_keys import Caller
from app.batches import approval, awaiting, schedule
from app.batches.batch import AWAITING_APPROVAL, CANCELLED, NOT_FINAL, QUEUED, SCHEDULED, Batch
from app.batches.errors import NotKnown, OwnBatch
from app.batches.recipients import recipients_of
from app.batches.schedule import LockedBatch
from app.console.blueprints import Page, current_scope, current_zone, pages, to_page
from app.console.caller import authors_of, calling_member
from app.console.deciding import ListChanged, became, decide, require_as_shown, target_of
from app.console.forms import RejectForm, say_beside
from app.console.send_forms import MomentForm
from app.console.sending import late_sentence
from app.errors import BatchConflict, InvalidRequest, LimitReached, MayNotIssue, PointsError, Refused
from app.members.members import APPROVER, SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.postgres.database import snapshot
from app.uploads import listed
from app.uploads import parts as upload_parts
from app.values.zones import ZONE_OF_ALL, moment_in

_RECIPIENTS_SHOWN = 10

# What another answer, a change of the organization, or a lock may have made impossible meanwhile.
_REFUSALS = (OwnBatch, BatchConflict, MayNotIssue, LimitReached, NotKnown, ListChanged)


@pages.get("/approvals")
def approvals() -> str:
    with snapshot() as connection:
        rows = listed.awaiting_of(connection, current_scope())
        return render_template(
            "console/approvals.html",
            rows=rows,
            authors=authors_of(connection, rows),
            now=schedule.now_of(connection, current_scope()),
            answered_within=schedule.ANSWERED_WITHIN,
            more=awaiting.count_awaiting(connection, current_scope()) - sum(row.batches for row in rows),
        )


@pages.get("/send/<token>/approval", role=APPROVER, asks=True)
@pages.get("/batches/<int:batch_id>/approval", role=APPROVER, asks=True)
def ask_to_answer(**of: Any) -> Page:
    return _asking_to_answer(of, RejectForm())


@pages.post("/send/<token>/approve", role=APPROVER)
@pages.post("/batches/<int:batch_id>/approve", role=APPROVER)
def approve(**of: Any) -> Page:
    """Approve what awaits it, or say why that is not possible. A batch that was approved is not changed."""

    def rule(connection: Connection, who: Caller, batch: Batch) -> LockedBatch | None:
        return approval.approve(connection, who, batch.id)

    try:
        done = decide(of, actions.APPROVED, [AWAITING_APPROVAL], rule)
    except _REFUSALS as error:
        return _refused("ask_to_answer", error, of)
    for batch, approved in zip(done.batches, done.news, strict=True):
        if approved is not None and approved.status == QUEUED:
            drains.ask(Job(batch.organization_id, batch.id, batch.recipient_count, current_record().trace_id))
    return done.target.page(f"{done.target.told(done.batches, 'approved')}.")


@pages.post("/send/<token>/reject", role=APPROVER)
@pages.post("/batches/<int:batch_id>/reject", role=APPROVER)
def reject(**of: Any) -> Page:
    """Reject what awaits an approval, or say why that is not possible. A batch that was rejected is not changed."""
    form = RejectForm()
    if not form.validate():
        page = _asking_to_answer(of, form)
        return (page, 400) if isinstance(page, str) else page
    reason = form.reason.data

    def rule(connection: Connection, who: Caller, batch: Batch) -> bool:
        return approval.reject(connection, who, batch.id, reason)

    try:
        done = decide(of, actions.REJECTED, [AWAITING_APPROVAL], rule, detail=reason)
    except _REFUSALS as error:
        return _refused("ask_to_answer", error, of)
    return done.target.page(f"{done.target.told(done.batches, 'rejected')}: nobody was debited.")


def _refused(asking: str, error: PointsError, of: dict[str, Any]) -> Page:
    """Say why nothing was done: of a list on the page that asks, which leads on if nothing is left to decide."""
    return to_page(asking if "token" in of else "show_batch", error.sentence, "bad", **of)


def _asking_to_answer(of: dict[str, Any], form: RejectForm) -> Page:
    with snapshot() as connection:
        who, target = calling_member(connection), target_of(connection, of)
        due, upload = target.having([AWAITING_APPROVAL]), target.upload
        if not due:
            return target.page()
        return render_template(
            "console/approval.html",
            target=target,
            upload=upload,
            repeated=upload_parts.repeated(connection, upload.id, amount=upload.amount) if upload else [],
            **_facts(connection, due),
            is_own=approval.is_own(connection, who, due[0]),
            organization=who.organization,
            authors=authors_of(connection, due),
            recipients=recipients_of(
                connection, due[0].id, organization_id=who.organization.id, at_most=_RECIPIENTS_SHOWN
            ),
            form=form,
        )


def _facts(connection: Connection, due: Sequence[Batch]) -> dict[str, Any]:
    """Return what a page shows of the batches that it asks about, and whom they pay."""
    ids = [batch.id for batch in due]
    by_batch = schedule.payable_of(connection, ids, organization_id=due[0].organization_id)
    payable = schedule.Payable(*map(sum, zip(*by_batch.values(), strict=True)))
    return {"due": due, "batch": due[0], "payable": payable, "by_batch": by_batch}


@pages.form("/send/<token>/cancel", role=SENDER, asks=True)
@pages.form("/batches/<int:batch_id>/cancel", role=SENDER, asks=True)
def cancel(**of: Any) -> Page:
    """Cancel what is not final, whatever the page showed of the rest, and say what was decided meanwhile."""
    if request.method != "POST":
        return _asking("console/cancel.html", of, NOT_FINAL)

    def rule(connection: Connection, who: Caller, batch: Batch) -> bool:
        schedule.cancel(connection, batch.id, who.scope)
        return batch.status != CANCELLED

    try:
        done = decide(of, actions.CANCELLED, NOT_FINAL, rule, is_bound=False)
    except BatchConflict:
        return to_page("show_batch", f"{_too_late(of)}. Issued points can be taken back.", "bad", **of)
    except NotKnown as error:
        return to_page("cancel", error.sentence, "bad", **of)
    told = f"{done.target.told(done.batches, 'cancelled')}: nobody was debited."
    if done.changes:
        told = f"{told if done.batches else 'Nothing was cancelled.'} Meanwhile {done.changes}."
    return done.target.page(told, "bad" if done.changes else "message")


@pages.form("/send/<token>/move", role=SENDER, asks=True)
@pages.form("/batches/<int:batch_id>/move", role=SENDER, asks=True)
def move(**of: Any) -> Page:
    """Move what is scheduled to another time, or say why that is not possible."""
    form = MomentForm()
    send_at = form.moment() if form.validate_on_submit() else None
    if send_at is None:
        return _asking("console/move.html", of, [SCHEDULED], form)

    def rule(connection: Connection, who: Caller, batch: Batch) -> str | None:
        if batch.status == SCHEDULED and batch.send_at != send_at:  # Else the same form was sent again.
            require_as_shown(connection, batch)
        return schedule.reschedule(connection, batch.id, send_at, who.scope)

    try:
        done = decide(of, actions.MOVED, [SCHEDULED], rule, detail=f"to {moment_in(ZONE_OF_ALL, send_at)}")
    except InvalidRequest as error:
        say_beside(form.day, late_sentence(error.faults["send_at"][0]))
        return _asking("console/move.html", of, [SCHEDULED], form)
    except BatchConflict:
        says = _too_late(of) if "batch_id" in of else "The list was issued in part"
        return _refused("move", Refused(f"{says}, so its time stays as it is."), of)
    except (NotKnown, ListChanged) as error:
        return to_page("move", error.sentence, "bad", **of)
    awaits = " The approval is too old for that, so it awaits another." if AWAITING_APPROVAL in done.news else ""
    told = done.target.told(done.batches, f"scheduled for {moment_in(current_zone(), send_at)}")
    return done.target.page(f"{told}.{awaits}")


def _too_late(of: dict[str, Any]) -> str:
    """Say what became of a batch since its form was shown, and by whom."""
    with snapshot() as connection:
        return f"It is too late: {became(connection, target_of(connection, of).batches[0])}"


def _asking(template: str, of: dict[str, Any], statuses: Sequence[str], form: MomentForm | None = None) -> Page:
    """Return the page that asks about the batches in these statuses; with faults in its form, as an answer to it."""
    with snapshot() as connection:
        target = target_of(connection, of)
        due = target.having(statuses)
        if not due:
            return target.page()
        facts = _facts(connection, due)
    page = render_template(template, target=target, form=form and form.or_at(due[0].send_at), **facts)
    return (page, 400) if form is not None and form.is_submitted() else page
