"""The words for actions: who did what, as a person reads it."""

from collections.abc import Mapping

from app.actions import log as actions
from app.organizations import SETTING_LABELS
from app.pages.action_pages import ActionRow
from app.scope import MEMBER, PLATFORM_KEY
from app.values.numbers import figures_apart, points
from app.values.texts import with_name


def who(action: ActionRow) -> str:
    """Return who did something, in words; what is not of the organization has no name there."""
    if action.by_type == MEMBER:
        return action.by_name
    if action.by_type == PLATFORM_KEY:
        return "a program of the service"
    return "somebody" if action.action in (actions.WRONG_PASSWORD, actions.WRONG_CODE) else "an operator of the service"


_WORDS: Mapping[str, str] = {
    actions.SIGNED_IN: "Signed in{more}",
    actions.WRONG_PASSWORD: "Gave a wrong password for {subject}{more}",
    actions.WRONG_CODE: "Gave a wrong code for {subject}{more}",
    actions.SECOND_FACTOR_ON: "Turned on a second factor",
    actions.SECOND_FACTOR_OFF: "Turned off the second factor of {subject}",
    actions.MEMBER_ADDED: "Added {subject} as {detail}",
    actions.MEMBER_REMOVED: "Removed {subject}",
    actions.ROLE_CHANGED: "Changed the role of {subject} from {detail}",
    actions.LINK_MADE: "Made a new link for {subject}",
    actions.ZONE_CHOSEN: "Chose the time zone {detail}",
    actions.MAIL_CHOSEN: "Chose which e-mails to get",
    actions.PASSWORD_CHOSEN: "Chose a password",
    actions.SESSIONS_ENDED: "Signed {subject} out everywhere",
    actions.KEY_MADE: "Made {key} key {id}{named}{more}",
    actions.KEY_REVOKED: "Revoked key {id}{named}",
    actions.WEBHOOK_MADE: "Made {mode} webhook {id}",
    actions.WEBHOOK_CHANGED: "{Mode} webhook {id}{more}",
    actions.SENT: "Sent {mode} batch {id}{more}",
    actions.MOVED: "Moved {mode} batch {id}{more}",
    actions.CANCELLED: "Cancelled {mode} batch {id}{more}",
    actions.APPROVED: "Approved {mode} batch {id}{more}",
    actions.REJECTED: "Rejected {mode} batch {id}{more}",
    actions.REVERSED: "Took points back by {mode} reversal {id}{more}",
    actions.EXTENDED: "Held {mode} transaction {id} for longer{more}",
    actions.REFILLED: "Refilled the {mode} balance{more} points",
    actions.CLOCK_SET: "Set the clock of the sandbox{more}",
    actions.SANDBOX_RESET: "Reset the sandbox{more}",
    actions.ORGANIZATION_MADE: "Made the organization",
    actions.ORGANIZATION_CHANGED: "Changed the organization{more}",
    actions.ORGANIZATION_SUSPENDED: "Suspended the organization",
    actions.ORGANIZATION_RESUMED: "Resumed the organization",
    actions.ORGANIZATION_DISABLED: "Disabled the organization",
    actions.ORGANIZATION_ENABLED: "Enabled the organization",
}


def sentence_of(action: ActionRow) -> str:
    """Return a sentence about an action, with its ids and names."""
    mode = {None: "", True: "sandbox", False: "live"}[action.sandbox]
    detail = _detail_of(action)
    return _WORDS.get(action.action, action.action).format(
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
_VALUES = {"console": "members", "all": "members and programs"}


def _detail_of(action: ActionRow) -> str | None:
    """Return what the log tells of an action, in the words of the pages."""
    if action.detail is not None and action.action == actions.ORGANIZATION_CHANGED:
        changes = [change.partition(": ") for change in action.detail.split(", ")]
        return ", ".join(_change_of(name, values) for name, _, values in changes)
    if action.detail is not None and action.action == actions.REFILLED:
        return points(int(action.detail))
    return action.detail


def _change_of(name: str, values: str) -> str:
    before_and_after = " to ".join(_VALUES.get(value, value) for value in values.split(" to "))
    return figures_apart(f"{_OPTIONS.get(name, name)}{f' from {before_and_after}' if values else ''}")
