"""What an organization's programs use: *Keys* and *Webhooks*, with what a page shows only once."""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from flask import render_template, request
from sqlalchemy import Connection

from app import api_keys
from app.actions import log as actions
from app.console.blueprints import LIVE, Page, current_member, current_scope, pages, to_page
from app.console.caller import ChangedMeanwhile, FormUsed, change, record, require_seen, signed_in
from app.console.forms import KeyForm, ReplayForm, WebhookForm, amount_of, in_words, say_beside, say_why
from app.console.views.activity import latest
from app.encryption import require_key
from app.errors import Faults, InvalidRequest, PointsError, Refused
from app.event import state_of
from app.events.event_types import PATTERNS, PING
from app.members.members import ADMIN
from app.pages import lists
from app.pages.filters import Filters
from app.postgres.database import single_statement, snapshot, transaction
from app.settings import INT64_MAX, settings
from app.values.texts import shown, with_name
from app.webhooks.actions import change as change_row
from app.webhooks.actions import make, ping, replay, rotate
from app.webhooks.attempts import told
from app.webhooks.webhook import TYPES_MAX, Webhook, WebhookConflict
from app.webhooks.webhook import webhooks as webhook_rows

_KEY_LOST = "The key was shown then. If it was not copied, revoke it and make another."


@pages.form("/keys", role=ADMIN)
def keys() -> Page:
    """Make a key and show it in this answer only: neither a reload nor going back shows it again."""
    form = KeyForm()
    bounds = form.bounds() if form.validate_on_submit() else None
    if bounds is None:
        return _keys_page(form), 400 if form.is_submitted() else 200
    sandbox, name = form.mode.data != LIVE, form.name.data or None
    try:
        with change(shown_once=_KEY_LOST) as connection:
            key_id, text = api_keys.create(
                connection, current_member().organization_id, sandbox=sandbox, name=name, bounds=bounds
            )
    except Refused as error:
        say_beside(form.name, in_words(error.sentence, form.name.label.text))
        return _keys_page(form), 400
    kind = "Development" if sandbox else "Live"
    title = with_name(f"{kind} key {key_id}", name)
    return render_template("console/key_made.html", key=text, title=title, bounds=bounds.in_words())


@pages.post("/keys/<int:key_id>/revoke", role=ADMIN)
def revoke_key(key_id: int) -> Page:
    organization_id = current_member().organization_id
    with transaction(by=signed_in()) as connection:
        _, is_news = api_keys.revoke(connection, key_id, organization_id=organization_id)
        title = with_name(f"Key {key_id}", api_keys.names_of(connection, [key_id])[key_id])
        by_whom = "" if is_news else latest(connection, actions.KEY_REVOKED, key_id)
    return to_page("keys", f"{title} is revoked." if is_news else f"{title} was already revoked. {by_whom}".strip())


def _keys_page(form: KeyForm) -> str:
    with single_statement() as connection:
        rows = api_keys.find_all(connection, current_member().organization_id)
    bounds = (form.scopes, form.expires_at, form.batch_limit, form.daily_limit)
    bounds_open = any(field.data or field.errors for field in bounds)
    return render_template("console/keys.html", keys=rows[::-1], form=form, bounds_open=bounds_open)


_DELIVERIES_SHOWN = 50
_WRITTEN = ("url", "types", "description")
_SHOWN_ONCE = "The secret was shown then. If it was not copied, make a new secret for the webhook."


@pages.form("/webhooks", role=ADMIN)
def webhooks() -> Page:
    """Make a webhook and show its secret in this answer only."""
    form = WebhookForm()
    if not form.is_submitted():
        return _list_page(WebhookForm(types="*"))
    fields = form.fields()
    try:
        require_key()
        values = webhook_rows.new.read(fields, settings())
        with change(shown_once=_SHOWN_ONCE) as connection:
            webhook, secret = make(connection, current_scope(), values)
            record(connection, actions.WEBHOOK_MADE, webhook.id)
    except FormUsed:
        raise
    except PointsError as error:
        _say_why(form, error, fields["types"])
        return _list_page(form), 400
    return _secret_page(webhook.id, secret)


def _say_why(form: WebhookForm, error: PointsError, types: Sequence[str]) -> None:
    say_why(form, InvalidRequest(_by_type(error.faults, types)) if isinstance(error, InvalidRequest) else error)


def _list_page(form: WebhookForm) -> str:
    with single_statement() as connection:
        all_of_mode = webhook_rows.all(connection, current_scope())
    return render_template("console/webhooks.html", webhooks=all_of_mode, form=form, patterns=PATTERNS)


def _by_type(faults: Faults, types: Sequence[str]) -> Faults:
    """Return the faults of a webhook for a person, who has written the types as a text and not as an array."""
    others = {name: sentences for name, sentences in faults.items() if name.partition(".")[0] != "types"}
    by_place = {f"types.{place}": pattern for place, pattern in enumerate(types)}
    of_types = [f"{shown(pattern)}: {faults[place][0]}" for place, pattern in by_place.items() if place in faults]
    if "types" in faults:
        of_types.append(f"Types of events may be {TYPES_MAX} at most, but are {len(types)}.")
    return {**others, **({"types": of_types} if of_types else {})}


@pages.get("/webhooks/<int:webhook_id>", role=ADMIN)
def webhook(webhook_id: int) -> str:
    return _webhook_page(webhook_id, ReplayForm(formdata=None))


def _webhook_page(webhook_id: int, form: ReplayForm, written: WebhookForm | None = None) -> str:
    """Return the page; after a ping (`pinged`: the last event before it) it tells what the receiver answered to it."""
    scope, pinged = current_scope(), request.args.get("pinged", type=int)
    with snapshot() as connection:
        row = webhook_rows.get(connection, webhook_id, scope)
        last = state_of(connection, scope).last_sequence
        filters = Filters(**scope._asdict(), webhook_id=webhook_id)
        attempts = lists.deliveries(connection, filters, start=None, limit=_DELIVERIES_SHOWN).rows
    if written is None:
        written = WebhookForm(formdata=None, url=row.url, types=", ".join(row.types), description=row.description)
    written.seen.data = _seen(row)
    pings = [one for one in attempts if pinged is not None and one.type == PING and one.sequence > pinged]
    return render_template(
        "console/webhook.html",
        of=row,
        form=form,
        written=written,
        last_sequence=last,
        deliveries=attempts,
        pinged=pinged,
        ping=pings[0] if pings else None,
        told=told,
    )


def _seen(row: Webhook) -> str:
    return sha256(repr([getattr(row, name) for name in _WRITTEN]).encode()).hexdigest()


@pages.post("/webhooks/<int:webhook_id>/change", role=ADMIN)
def change_webhook(webhook_id: int) -> Page:
    """Change what a form says, if its page showed what the webhook is now."""
    form = WebhookForm()
    fields = form.fields()
    with single_statement() as connection:
        shown_row = webhook_rows.get(connection, webhook_id, current_scope())
    changed = {name: value for name, value in fields.items() if value != (getattr(shown_row, name) or "")}

    def rule(connection: Connection, row: Webhook) -> None:
        require_seen(_seen(row), lambda: latest(connection, "webhook", webhook_id))
        change_row(connection, row, values)

    try:
        # Before the row is locked: the name in a URL is resolved.
        values = webhook_rows.changed.read(changed, settings()) if changed else {}
        _act(webhook_id, rule, f"changed its {', '.join(changed) or 'nothing'}")
    except (ChangedMeanwhile, InvalidRequest) as error:
        _say_why(form, error, fields["types"])
        return _webhook_page(webhook_id, ReplayForm(formdata=None), form), error.status
    return to_page("webhook", "The webhook is changed.", webhook_id=webhook_id)


@pages.post("/webhooks/<int:webhook_id>/<any(ping, disable, enable, skip):name>", role=ADMIN)
def act_on_webhook(webhook_id: int, name: str) -> Page:
    action = webhook_rows.actions[name]
    try:
        _act(webhook_id, action.rule, action.done)
    except WebhookConflict as error:
        with snapshot() as connection:
            says = f"{error.sentence} {latest(connection, 'webhook', webhook_id)}".strip()
        return to_page("webhook", says, "bad", webhook_id=webhook_id)
    if action.rule is ping:
        with single_statement() as connection:
            last = state_of(connection, current_scope()).last_sequence
        return to_page("webhook", webhook_id=webhook_id, pinged=last)
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
    _, secret = _act(webhook_id, rotate, webhook_rows.actions["rotate"].done, shown_once=_SHOWN_ONCE)
    return _secret_page(webhook_id, secret)


@pages.post("/webhooks/<int:webhook_id>/delete", role=ADMIN, deletes=True)
def delete_webhook(webhook_id: int) -> Page:
    _act(webhook_id, webhook_rows.delete, "deleted")
    return to_page("webhooks", f"Webhook {webhook_id} is deleted.")


def _act(webhook_id: int, rule: Callable[..., Any], done: str, *, shown_once: str = "") -> Any:
    """Do what a form asks for, once, with the webhook locked, and record it for *Activity*."""
    with change(shown_once=shown_once) as connection:
        outcome = rule(connection, webhook_rows.get(connection, webhook_id, current_scope(), lock=True))
        record(connection, actions.WEBHOOK_CHANGED, webhook_id, done)
    return outcome


def _secret_page(webhook_id: int, secret: str) -> str:
    return render_template("console/webhook_secret.html", webhook_id=webhook_id, secret=secret)
