"""*Send*, after the last step: the progress of a list's batches, and the outcome of each line."""

from flask import Response, redirect, render_template, url_for
from sqlalchemy import Connection
from werkzeug.wrappers import Response as AnyResponse

from app.batches import read as batches
from app.batches.read import QUEUED, SCHEDULED, BatchRow
from app.console import outcomes
from app.console.blueprints import pages
from app.console.views.send import find_list
from app.errors import NotFound
from app.postgres.database import transaction
from app.uploads import parts as upload_parts
from app.uploads import uploads
from app.uploads.uploads import UploadRow


@pages.get("/send/<token>/outcome")
def outcome(token: str) -> AnyResponse | str:
    with transaction() as connection:
        upload = find_list(connection, token)
        if upload.sent_at is None:
            return redirect(url_for("console.check", token=token))
        rows = batches_of(connection, upload)
        states = batches.count_states(connection, [row.id for row in rows if row.debited_count])
    counts = [(row, states.get(row.id, batches.StateCounts())) for row in rows]
    return render_template(
        "console/outcome.html",
        upload=upload,
        parts_of_list=counts,
        final=sum(row.is_final for row in rows),
        waiting=sum(row.status == QUEUED for row in rows),
        scheduled=[row for row in rows if row.status == SCHEDULED],
        debited=sum(row.debited_count or 0 for row in rows),
        points=sum(row.debited_amount or 0 for row in rows),
        credited=sum(of.credited for _, of in counts),
        reversed=sum(of.reversed for _, of in counts),
        unpaid=sum(row.recipient_count - row.debited_count for row in rows if row.debited_count is not None),
        new_token=uploads.new_token,
    )


@pages.get("/send/<token>/outcome.csv")
def outcome_file(token: str) -> Response:
    with transaction() as connection:
        upload = find_list(connection, token)
        rows = batches_of(connection, upload)
    if upload.sent_at is None or not rows:
        raise NotFound("list", token)
    return outcomes.of_list(upload, rows)


def batches_of(connection: Connection, upload: UploadRow) -> list[BatchRow]:
    """Return the batches of a list in order; none once its parts are deleted."""
    found = [
        batches.find(connection, one, organization_id=upload.organization_id, sandbox=upload.sandbox)
        for one in upload_parts.batch_ids_of(connection, upload.id)
    ]
    return [batch for batch in found if batch is not None]
