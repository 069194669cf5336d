"""The actions on a webhook: ping, disable, enable, skip, replay, rotate, delete."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from flask import flash, redirect, url_for
from sqlalchemy import Connection
from werkzeug.wrappers import Response

from app.actions import log as member_actions
from app.console.blueprints import current_member, is_sandbox, needs, pages
from app.console.caller import record_action
from app.console.forms import ReplayForm, amount_of, say_beside, say_why
from app.console.one_effect import use
from app.console.views.webhooks import SHOWN_ONCE, secret_page, to_webhook, webhook_page
from app.errors import InvalidRequest
from app.members.members import ADMIN
from app.settings import INT64_MAX
from app.webhooks import actions
from app.webhooks.errors import WebhookConflict
from app.webhooks.webhooks import WebhookRow

_Outcome = TypeVar("_Outcome")
_Action = Callable[[Connection, WebhookRow], object]

# Each action with its words for Activity and the page.
_SIMPLE: dict[str, tuple[_Action, str]] = {
    "ping": (actions.ping, "pinged"),
    "disable": (actions.disable, "disabled"),
    "enable": (actions.enable, "enabled"),
    "skip": (actions.skip, "skipped the event that it was stuck at"),
}


@pages.post("/webhooks/<int:webhook_id>/<any(ping, disable, enable, skip):action>")
@needs(ADMIN)
def act_on_webhook(webhook_id: int, action: str) -> Response:
    function, done = _SIMPLE[action]
    return _try(webhook_id, function, done)


@pages.post("/webhooks/<int:webhook_id>/replay")
@needs(ADMIN)
def replay_webhook(webhook_id: int) -> Response | tuple[str, int]:
    form = ReplayForm()
    sequence = amount_of(form.from_sequence.data) if form.validate() else None
    if not sequence or sequence > INT64_MAX:
        say_beside(form.from_sequence, "Enter the number of an event, digits only.")
        return webhook_page(webhook_id, form), 400
    done = f"replayed from event {sequence}"
    try:
        _act(webhook_id, partial(actions.replay, from_sequence=sequence), done)
    except (WebhookConflict, InvalidRequest) as error:
        say_why(form, error)
        return webhook_page(webhook_id, form), 400
    flash(f"Done: {done}.")
    return to_webhook(webhook_id)


@pages.post("/webhooks/<int:webhook_id>/rotate")
@needs(ADMIN)
def rotate_webhook(webhook_id: int) -> str:
    _, secret = _act(webhook_id, actions.rotate, "rotated its secret", shown_once=SHOWN_ONCE)
    return secret_page(webhook_id, secret)


@pages.post("/webhooks/<int:webhook_id>/delete")
@needs(ADMIN)
def delete_webhook(webhook_id: int) -> Response:
    _act(webhook_id, actions.delete, "deleted")
    flash(f"Webhook {webhook_id} is deleted.")
    return redirect(url_for("console.webhooks"), 303)


def _try(webhook_id: int, action: _Action, done: str) -> Response:
    """Do the action, and show on the webhook's page that it is done, or why it is not possible."""
    try:
        _act(webhook_id, action, done)
        flash(f"Done: {done}.")
    except WebhookConflict as error:
        flash(error.sentence, "bad")
    return to_webhook(webhook_id)


def _act(
    webhook_id: int, action: Callable[[Connection, WebhookRow], _Outcome], done: str, *, shown_once: str = ""
) -> _Outcome:
    sandbox = is_sandbox()

    def once(connection: Connection, webhook: WebhookRow) -> _Outcome:
        use(connection, shown_once=shown_once)
        return action(connection, webhook)

    def note(connection: Connection) -> None:
        record_action(connection, member_actions.WEBHOOK_CHANGED, webhook_id, sandbox=sandbox, detail=done)

    organization_id = current_member().organization_id
    return actions.act(webhook_id, once, organization_id=organization_id, sandbox=sandbox, also=note)
