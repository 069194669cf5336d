"""What is done with a webhook: its actions, each a button; a replay, a new secret and its deletion, each a form."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flask import flash, redirect, url_for
from werkzeug.wrappers import Response

from app.actions import log as member_actions
from app.console.blueprints import current_member, is_sandbox, needs, pages
from app.console.caller import record_action
from app.console.forms import ReplayForm, amount_of, say_beside, say_why
from app.console.one_effect import change
from app.console.views.webhooks import SHOWN_ONCE, secret_page, to_webhook, webhook_page
from app.errors import InvalidRequest
from app.members.members import ADMIN
from app.scope import Scope
from app.settings import INT64_MAX
from app.webhooks.actions import replay, rotate
from app.webhooks.webhook import WebhookConflict, webhooks


@pages.post("/webhooks/<int:webhook_id>/<any(ping, disable, enable, skip):name>")
@needs(ADMIN)
def act_on_webhook(webhook_id: int, name: str) -> Response:
    action = webhooks.actions[name]
    try:
        _act(webhook_id, action.rule, action.done)
        flash(f"Done: {action.done}.")
    except WebhookConflict as error:
        flash(error.sentence, "bad")
    return to_webhook(webhook_id)


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
        _act(webhook_id, partial(replay, from_sequence=sequence), done)
    except (WebhookConflict, InvalidRequest) as error:
        say_why(form, error)
        return webhook_page(webhook_id, form), 400
    flash(f"Done: {done}.")
    return to_webhook(webhook_id)


@pages.post("/webhooks/<int:webhook_id>/rotate")
@needs(ADMIN)
def rotate_webhook(webhook_id: int) -> str:
    _, secret = _act(webhook_id, rotate, webhooks.actions["rotate"].done, shown_once=SHOWN_ONCE)
    return secret_page(webhook_id, secret)


@pages.post("/webhooks/<int:webhook_id>/delete")
@needs(ADMIN)
def delete_webhook(webhook_id: int) -> Response:
    _act(webhook_id, webhooks.delete, "deleted")
    flash(f"Webhook {webhook_id} is deleted.")
    return redirect(url_for("console.webhooks"), 303)


def _act(webhook_id: int, rule: Callable[..., Any], done: str, *, shown_once: str = "") -> Any:
    """Do what a form asks for, once, with the webhook locked, and record it for *Activity*."""
    scope = Scope(current_member().organization_id, is_sandbox())
    with change(shown_once=shown_once) as connection:
        outcome = rule(connection, webhooks.get(connection, webhook_id, scope, lock=True))
        record_action(connection, member_actions.WEBHOOK_CHANGED, webhook_id, sandbox=scope.sandbox, detail=done)
    return outcome
