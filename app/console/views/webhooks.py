"""*Webhooks* of a mode: make one and show its secret once, list them, their deliveries, and what is done with one."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flask import render_template

from app.actions import log as log_of_actions
from app.console.blueprints import Page, current_scope, pages, to_page
from app.console.caller import FormUsed, change, record_action
from app.console.forms import ReplayForm, WebhookForm, amount_of, say_beside, say_why
from app.errors import Faults, InvalidRequest, PointsError
from app.event import state_of
from app.events.log import PATTERNS
from app.members.members import ADMIN
from app.pages import lists
from app.pages.filters import Filters
from app.postgres.database import transaction
from app.settings import INT64_MAX, settings
from app.values.texts import shown
from app.webhooks.actions import make, replay, rotate
from app.webhooks.secrets import require_key
from app.webhooks.webhook import TYPES_MAX, WebhookConflict
from app.webhooks.webhook import webhooks as rows

_DELIVERIES_SHOWN = 50
_SHOWN_ONCE = "The secret was shown then. If it was not copied, make a new secret for the webhook."


@pages.get("/webhooks", role=ADMIN)
def webhooks() -> str:
    return _page(WebhookForm(formdata=None, types="*"))


@pages.post("/webhooks", role=ADMIN)
def make_webhook() -> Page:
    """Make a webhook and show its secret in this answer only."""
    form = WebhookForm()
    types = list(dict.fromkeys(re.split(r"[\s,]+", (form.types.data or "").strip(" ,") or "*")))
    fields = {"url": form.url.data, "types": types, "description": form.description.data}
    try:
        require_key()
        values = rows.new.read(fields, settings())
        with change(shown_once=_SHOWN_ONCE) as connection:
            webhook, secret = make(connection, current_scope(), values)
            record_action(connection, log_of_actions.WEBHOOK_MADE, webhook.id, sandbox=webhook.sandbox)
    except FormUsed:
        raise
    except PointsError as error:
        says = InvalidRequest(_by_type(error.faults, types)) if isinstance(error, InvalidRequest) else error
        say_why(form, says)
        return _page(form), 400
    return _secret_page(webhook.id, secret)


def _page(form: WebhookForm) -> str:
    with transaction() as connection:
        all_of_mode = rows.all(connection, current_scope())
    return render_template("console/webhooks.html", webhooks=all_of_mode, form=form, patterns=PATTERNS)


def _by_type(faults: Faults, types: Sequence[str]) -> Faults:
    """Return the faults of a webhook for a person, who has written the types as one text and not as an array."""
    others = {name: sentences for name, sentences in faults.items() if name.partition(".")[0] != "types"}
    by_place = {f"types.{place}": one for place, one in enumerate(types)}
    of_types = [f"{shown(one)}: {faults[place][0]}" for place, one in by_place.items() if place in faults]
    if "types" in faults:
        of_types.append(f"Types of events may be {TYPES_MAX} at most, but are {len(types)}.")
    return {**others, **({"types": of_types} if of_types else {})}


@pages.get("/webhooks/<int:webhook_id>", role=ADMIN)
def webhook(webhook_id: int) -> str:
    return _webhook_page(webhook_id, ReplayForm(formdata=None))


def _webhook_page(webhook_id: int, form: ReplayForm) -> str:
    scope = current_scope()
    with transaction() as connection:
        row = rows.get(connection, webhook_id, scope)
        last = state_of(connection, scope).last_sequence
    with transaction() as connection:
        filters = Filters(**scope._asdict(), webhook_id=webhook_id)
        attempts = lists.deliveries(connection, filters, start=None, limit=_DELIVERIES_SHOWN)
    return render_template("console/webhook.html", of=row, form=form, last_sequence=last, deliveries=attempts.rows)


@pages.post("/webhooks/<int:webhook_id>/<any(ping, disable, enable, skip):name>", role=ADMIN)
def act_on_webhook(webhook_id: int, name: str) -> Page:
    action = rows.actions[name]
    try:
        _act(webhook_id, action.rule, action.done)
    except WebhookConflict as error:
        return to_page("webhook", error.sentence, "bad", webhook_id=webhook_id)
    return to_page("webhook", f"Done: {action.done}.", webhook_id=webhook_id)


@pages.post("/webhooks/<int:webhook_id>/replay", role=ADMIN)
def replay_webhook(webhook_id: int) -> Page:
    form = ReplayForm()
    sequence = amount_of(form.from_sequence.data) if form.validate() else None
    if not sequence or sequence > INT64_MAX:
        say_beside(form.from_sequence, "Enter the number of an event, digits only.")
        return _webhook_page(webhook_id, form), 400
    done = f"replayed from event {sequence}"
    try:
        _act(webhook_id, partial(replay, from_sequence=sequence), done)
    except (WebhookConflict, InvalidRequest) as error:
        say_why(form, error)
        return _webhook_page(webhook_id, form), 400
    return to_page("webhook", f"Done: {done}.", webhook_id=webhook_id)


@pages.post("/webhooks/<int:webhook_id>/rotate", role=ADMIN)
def rotate_webhook(webhook_id: int) -> str:
    _, secret = _act(webhook_id, rotate, rows.actions["rotate"].done, shown_once=_SHOWN_ONCE)
    return _secret_page(webhook_id, secret)


@pages.post("/webhooks/<int:webhook_id>/delete", role=ADMIN)
def delete_webhook(webhook_id: int) -> Page:
    _act(webhook_id, rows.delete, "deleted")
    return to_page("webhooks", f"Webhook {webhook_id} is deleted.")


def _act(webhook_id: int, rule: Callable[..., Any], done: str, *, shown_once: str = "") -> Any:
    """Do what a form asks for, once, with the webhook locked, and record it for *Activity*."""
    scope = current_scope()
    with change(shown_once=shown_once) as connection:
        outcome = rule(connection, rows.get(connection, webhook_id, scope, lock=True))
        record_action(connection, log_of_actions.WEBHOOK_CHANGED, webhook_id, sandbox=scope.sandbox, detail=done)
    return outcome


def _secret_page(webhook_id: int, secret: str) -> str:
    return render_template("console/webhook_secret.html", webhook_id=webhook_id, secret=secret)
