"""*Send*, after the last step: the progress of a list's batches, and the outcome of each line."""

from flask import Response, redirect, render_template, url_for
from sqlalchemy import Connection
from werkzeug.wrappers import Response as AnyResponse

from app.batches import read as batches
from app.batches.read import BatchRow
from app.console import files, outcomes
from app.console.blueprints import pages
from app.console.views.send import find_list
from app.errors import NotFound
from app.postgres.database import transaction
from app.uploads import parts as upload_parts
from app.uploads.uploads import UploadRow


@pages.get("/send/<token>/outcome")
def outcome(token: str) -> AnyResponse | str:
    with transaction() as connection:
        upload = find_list(connection, token)
        if upload.sent_at is None:
            return redirect(url_for("console.check", token=token))
        rows = _batches_of(connection, upload)
        states = batches.count_states(connection, [row.id for row in rows if row.debited_count])
    counts = [(row, states.get(row.id, batches.StateCounts())) for row in rows]
    return render_template(
        "console/outcome.html",
        upload=upload,
        parts_of_list=counts,
        final=sum(row.is_final for row in rows),
        debited=sum(row.debited_count or 0 for row in rows),
        points=sum(row.debited_amount or 0 for row in rows),
        credited=sum(of.credited for _, of in counts),
        reversed=sum(of.reversed for _, of in counts),
    )


@pages.get("/send/<token>/outcome.csv", defaults={"kind": files.CSV})
@pages.get("/send/<token>/outcome.xlsx", defaults={"kind": files.XLSX})
def outcome_file(token: str, kind: str) -> Response:
    with transaction() as connection:
        upload = find_list(connection, token)
        rows = _batches_of(connection, upload)
    if upload.sent_at is None or not rows:
        raise NotFound("list", token)
    return outcomes.of_list(upload, rows, kind)


def _batches_of(connection: Connection, upload: UploadRow) -> list[BatchRow]:
    """Return the batches of a list in order; none once its parts are deleted."""
    found = [
        batches.find(connection, one, organization_id=upload.organization_id, sandbox=upload.sandbox)
        for one in upload_parts.batch_ids_of(connection, upload.id)
    ]
    return [batch for batch in found if batch is not None]
