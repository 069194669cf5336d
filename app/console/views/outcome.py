"""*Send*, after the last step: the progress of a list's batches, and the outcome of each line."""

from flask import Response, redirect, render_template, url_for
from sqlalchemy import Connection
from werkzeug.wrappers import Response as AnyResponse

from app.batches import read as batches
from app.batches.payloads import sums_of
from app.batches.read import AWAITING_APPROVAL, QUEUED, SCHEDULED, BatchRow
from app.console import files, outcomes
from app.console.blueprints import pages
from app.console.views.send import get_list
from app.errors import NotFound
from app.members.members import names_of
from app.postgres.database import transaction
from app.uploads.uploads import UploadRow


@pages.get("/send/<token>/outcome")
def outcome(token: str) -> AnyResponse | str:
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
    return outcomes.of_list(upload, rows, kind)


def batches_of(connection: Connection, upload: UploadRow) -> list[BatchRow]:
    """Return the batches of a list in order; none until it is sent."""
    return [
        batches.get(connection, one, organization_id=upload.organization_id, sandbox=upload.sandbox)
        for one in upload.batch_ids or ()
    ]
