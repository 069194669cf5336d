"""*Lists*: those that are not sent yet, and the sent ones with their outcome."""

from flask import render_template, request

from app.console.blueprints import current_member, is_sandbox, pages
from app.postgres.database import transaction
from app.uploads import listed
from app.uploads.uploads import UNSENT_KEPT_DAYS
from app.values.ids import require_id

_ROWS = 50


@pages.get("/lists")
def lists() -> str:
    before = request.args.get("before", type=int)
    if before is not None:
        require_id("list", before)
    organization_id, sandbox = current_member().organization_id, is_sandbox()
    with transaction() as connection:
        waiting = [] if before else listed.unsent(connection, organization_id, sandbox=sandbox)
        rows = listed.sent(connection, organization_id, sandbox=sandbox, before=before, at_most=_ROWS + 1)
    return render_template(
        "console/lists.html",
        unsent=waiting,
        sent=rows[:_ROWS],
        is_first=before is None,
        older=rows[_ROWS - 1].id if len(rows) > _ROWS else None,
        kept_days=UNSENT_KEPT_DAYS,
    )
