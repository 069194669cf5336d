"""The words of *Activity*: who did what, and when. Its page is a search (`searches.py`)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flask import url_for
from sqlalchemy import Connection

from app.actions import log as actions
from app.console.blueprints import LIVE, SANDBOX, current_member, current_zone
from app.console.forms import SETTING_LABELS
from app.members.members import ADMIN, VIEWER
from app.pages import action_pages
from app.pages.action_pages import ActionRow
from app.pages.filters import Filters
from app.scope import MEMBER, PLATFORM_KEY
from app.values.numbers import points
from app.values.texts import with_name
from app.values.timestamps import timestamp
from app.values.zones import moment_in

HEADING = ("time", "who", "what", "mode")


def lines_of(rows: Sequence[ActionRow]) -> dict[str, Any]:
    """Return what the page shows of these actions."""
    return {"rows": [(action, who(action), sentence_of(action), _path_of(action)) for action in rows]}


def file_lines(rows: Sequence[ActionRow]) -> Iterator[Sequence[str]]:
    """Yield what a file has of these actions, under `HEADING`."""
    for action in rows:
        mode = {None: "", True: SANDBOX, False: LIVE}[action.sandbox]
        yield timestamp(action.created_at), who(action), sentence_of(action), mode


def latest(connection: Connection, about: str, subject_id: int) -> str:
    """Return who has last done what to something, as a sentence, so that a form that is stale can say it.

    It is empty if none of the organization's newest actions was that. `about` is how the action's word begins.
    """
    of = current_member().organization_id
    filters = Filters(organization_id=of, sandbox=False, about=about, equals={"subject_id": subject_id})
    rows = action_pages.page(connection, filters, start=None, limit=1).rows
    said = [f"{moment_in(current_zone(), row.created_at)}, {who(row)}: {sentence_of(row)}." for row in rows]
    return "".join(said).replace("..", ".")


def who(action: ActionRow) -> str:
    """Return who did something, in words; what is not of the organization has no name there."""
    if action.by_type == MEMBER:
        return action.by_name
    if action.by_type == PLATFORM_KEY:
        return "A program of the service"
    return "Somebody" if action.action in (actions.WRONG_PASSWORD, actions.WRONG_CODE) else "An operator of the service"


class _Page(NamedTuple):
    """The page of what an action has changed, the name of its id there, and the lowest role that sees it."""

    endpoint: str
    id_name: str | None = None
    role: str = ADMIN


_BATCH, _REVERSAL = _Page("show_batch", "batch_id", VIEWER), _Page("show_reversal", "reversal_id", VIEWER)
# Members and webhooks may be gone, so their lists are the pages.
_MEMBERS, _KEYS, _WEBHOOKS, _SANDBOX = _Page("members"), _Page("keys"), _Page("webhooks"), _Page("sandbox")
_WORDS: Mapping[str, tuple[str, _Page | None]] = {
    actions.SIGNED_IN: ("Signed in{more}", None),
    actions.WRONG_PASSWORD: ("Gave a wrong password for {subject}{more}", None),
    actions.WRONG_CODE: ("Gave a wrong code for {subject}{more}", None),
    actions.SECOND_FACTOR_ON: ("Turned on a second factor", None),
    actions.SECOND_FACTOR_OFF: ("Turned off the second factor of {subject}", _MEMBERS),
    actions.MEMBER_ADDED: ("Added {subject} as {detail}", _MEMBERS),
    actions.MEMBER_REMOVED: ("Removed {subject}", _MEMBERS),
    actions.ROLE_CHANGED: ("Changed the role of {subject} from {detail}", _MEMBERS),
    actions.LINK_MADE: ("Made a new link for {subject}", _MEMBERS),
    actions.ZONE_CHOSEN: ("Chose the time zone {detail}", None),
    actions.MAIL_CHOSEN: ("Chose which e-mails to get", None),
    actions.PASSWORD_CHOSEN: ("Chose a password", None),
    actions.SESSIONS_ENDED: ("Signed {subject} out everywhere", _MEMBERS),
    actions.KEY_MADE: ("Made {key} key {id}{named}{more}", _KEYS),
    actions.KEY_REVOKED: ("Revoked key {id}{named}", _KEYS),
    actions.WEBHOOK_MADE: ("Made {mode} webhook {id}", _WEBHOOKS),
    actions.WEBHOOK_CHANGED: ("{Mode} webhook {id}{more}", _WEBHOOKS),
    actions.SENT: ("Sent {mode} batch {id}{more}", _BATCH),
    actions.MOVED: ("Moved {mode} batch {id}{more}", _BATCH),
    actions.CANCELLED: ("Cancelled {mode} batch {id}{more}", _BATCH),
    actions.APPROVED: ("Approved {mode} batch {id}{more}", _BATCH),
    actions.REJECTED: ("Rejected {mode} batch {id}{more}", _BATCH),
    actions.REVERSED: ("Took points back by {mode} reversal {id}{more}", _REVERSAL),
    actions.EXTENDED: ("Held {mode} transaction {id} for longer{more}", None),
    actions.REFILLED: ("Refilled the {mode} balance{more} points", None),
    actions.CLOCK_SET: ("Set the clock of the sandbox{more}", _SANDBOX),
    actions.SANDBOX_RESET: ("Reset the sandbox{more}", _SANDBOX),
    actions.ORGANIZATION_MADE: ("Made the organization", None),
    actions.ORGANIZATION_CHANGED: ("Changed the organization{more}", _Page("settings")),
    actions.ORGANIZATION_SUSPENDED: ("Suspended the organization", None),
    actions.ORGANIZATION_RESUMED: ("Resumed the organization", None),
    actions.ORGANIZATION_DISABLED: ("Disabled the organization", None),
    actions.ORGANIZATION_ENABLED: ("Enabled the organization", None),
}


def _path_of(action: ActionRow) -> str | None:
    """Return the path of the page of what was changed, in its mode; None if there is none for this member."""
    _, page = _WORDS.get(action.action, ("", None))
    if page is None or not current_member().may(page.role):
        return None
    values: dict[str, Any] = {} if page.id_name is None else {page.id_name: action.subject_id}
    if action.sandbox is not None:
        values["mode"] = SANDBOX if action.sandbox else LIVE
    return url_for(f"console.{page.endpoint}", **values)


def sentence_of(action: ActionRow) -> str:
    """Return a sentence about an action, with its ids and names."""
    mode = {None: "", True: "sandbox", False: "live"}[action.sandbox]
    detail = _detail_of(action)
    sentence, _ = _WORDS.get(action.action, (action.action, None))
    return sentence.format(
        subject=action.subject_name,
        id=action.subject_id,
        named=with_name("", action.subject_name),
        key="development" if action.sandbox else "live",
        mode=mode,
        Mode=mode.capitalize(),
        detail=detail,
        more="" if detail is None else f": {detail}",
    )


_OPTIONS = {"name": "its name", "external_id": "the platform's id of it"}
_OPTIONS |= {name: label.lower() for name, label in SETTING_LABELS.items()}


def _detail_of(action: ActionRow) -> str | None:
    """Return what the log tells of an action, in the words of the pages."""
    if action.detail is not None and action.action == actions.ORGANIZATION_CHANGED:
        changes = [change.partition(": ") for change in action.detail.split(", ")]
        return ", ".join(f"{_OPTIONS.get(name, name)} {values}".strip() for name, _, values in changes)
    if action.detail is not None and action.action == actions.REFILLED:
        return points(int(action.detail))
    return action.detail
