"""*Activity*: who did what, and when."""

from flask import render_template, request

from app.console.blueprints import current_member, pages
from app.members import actions
from app.members.actions import Action
from app.postgres.database import transaction
from app.values.ids import require_id

_ROWS = 100


@pages.get("/activity")
def activity() -> str:
    before = request.args.get("before", type=int)
    if before is not None:
        require_id("action", before)
    with transaction() as connection:
        rows = actions.find_page(connection, current_member().organization_id, before=before, limit=_ROWS + 1)
    shown = [(action, sentence_of(action)) for action in rows[:_ROWS]]
    older = rows[_ROWS - 1].id if len(rows) > _ROWS else None
    return render_template("console/activity.html", actions=shown, is_first=before is None, older=older)


_SENTENCES = {
    actions.SIGNED_IN: "Signed in",
    actions.MEMBER_ADDED: "Added {subject} as {detail}",
    actions.MEMBER_REMOVED: "Removed {subject}",
    actions.ROLE_CHANGED: "Changed the role of {subject} from {detail}",
    actions.LINK_MADE: "Made a new link for {subject}",
    actions.ZONE_CHOSEN: "Chose the time zone {detail}",
    actions.PASSWORD_CHOSEN: "Chose a password",
    actions.SESSIONS_ENDED: "Signed {subject} out everywhere",
    actions.KEY_MADE: "Made {key} key {id}",
    actions.KEY_REVOKED: "Revoked key {id}",
    actions.WEBHOOK_MADE: "Made {mode} webhook {id}",
    actions.WEBHOOK_CHANGED: "{Mode} webhook {id}{more}",
    actions.SENT: "Sent {mode} batch {id}{more}",
    actions.MOVED: "Moved {mode} batch {id}{more}",
    actions.CANCELLED: "Cancelled {mode} batch {id}{more}",
    actions.REVERSED: "Took back {mode} batch {id}{more}",
    actions.EXTENDED: "Held {mode} transaction {id} for longer{more}",
}


def sentence_of(action: Action) -> str:
    """Return a sentence about an action, with its ids and names."""
    mode = {None: "", True: "sandbox", False: "live"}[action.sandbox]
    return _SENTENCES.get(action.action, action.action).format(
        subject=action.subject_name,
        id=action.subject_id,
        key="development" if action.sandbox else "live",
        mode=mode,
        Mode=mode.capitalize(),
        detail=action.detail,
        more="" if action.detail is None else f": {action.detail}",
    )
