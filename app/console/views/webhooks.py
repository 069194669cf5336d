"""*Webhooks* of a mode: make one and show its secret once, list them, and show the deliveries of each."""

import re
from collections.abc import Sequence

from flask import redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.actions import log as actions
from app.console.blueprints import current_member, is_sandbox, needs, pages
from app.console.caller import record_action
from app.console.forms import ReplayForm, WebhookForm, say_why
from app.console.one_effect import FormUsed, change
from app.errors import Faults, InvalidRequest, PointsError
from app.events.log import PATTERNS
from app.events.payloads import state_of
from app.members.members import ADMIN
from app.pages import delivery_pages
from app.pages.filters import Filters
from app.postgres.database import transaction
from app.scope import Scope
from app.settings import settings
from app.values.texts import shown
from app.webhooks.actions import make
from app.webhooks.secrets import require_key
from app.webhooks.webhook import TYPES_MAX
from app.webhooks.webhook import webhooks as rows

_DELIVERIES_SHOWN = 50
SHOWN_ONCE = "The secret was shown then. If it was not copied, make a new secret for the webhook."


@pages.get("/webhooks")
@needs(ADMIN)
def webhooks() -> str:
    return _page(WebhookForm(formdata=None, types="*"))


@pages.post("/webhooks")
@needs(ADMIN)
def make_webhook() -> str | tuple[str, int]:
    """Make a webhook and show its secret in this answer only."""
    form = WebhookForm()
    types = list(dict.fromkeys(re.split(r"[\s,]+", (form.types.data or "").strip(" ,") or "*")))
    fields = {"url": form.url.data, "types": types, "description": form.description.data}
    try:
        require_key()
        values = rows.new.read(fields, settings())
        with change(shown_once=SHOWN_ONCE) as connection:
            webhook, secret = make(connection, _scope(), values)
            record_action(connection, actions.WEBHOOK_MADE, webhook.id, sandbox=webhook.sandbox)
    except FormUsed:
        raise
    except InvalidRequest as error:
        say_why(form, InvalidRequest(_by_type(error.faults, types)))
        return _page(form), 400
    except PointsError as error:
        say_why(form, error)
        return _page(form), 400
    return secret_page(webhook.id, secret)


@pages.get("/webhooks/<int:webhook_id>")
@needs(ADMIN)
def webhook(webhook_id: int) -> str:
    return webhook_page(webhook_id, ReplayForm(formdata=None))


def webhook_page(webhook_id: int, form: ReplayForm) -> str:
    scope = _scope()
    with transaction() as connection:
        row = rows.get(connection, webhook_id, scope)
        log = state_of(connection, scope.organization_id, sandbox=scope.sandbox)
    with transaction() as connection:
        filters = Filters(**scope._asdict(), webhook_id=webhook_id)
        attempts = delivery_pages.page(connection, filters, start=None, limit=_DELIVERIES_SHOWN)
    last = log.last_sequence
    return render_template("console/webhook.html", of=row, form=form, last_sequence=last, deliveries=attempts.rows)


def secret_page(webhook_id: int, secret: str) -> str:
    return render_template("console/webhook_secret.html", webhook_id=webhook_id, secret=secret)


def _scope() -> Scope:
    return Scope(current_member().organization_id, is_sandbox())


def _page(form: WebhookForm) -> str:
    with transaction() as connection:
        all_of_mode = rows.all(connection, _scope())
    return render_template("console/webhooks.html", webhooks=all_of_mode, form=form, patterns=PATTERNS)


def _by_type(faults: Faults, types: Sequence[str]) -> Faults:
    """Return the faults of a webhook for a person, who has written the types as one text and not as an array."""
    told = {name: sentences for name, sentences in faults.items() if name.partition(".")[0] != "types"}
    by_place = {f"types.{place}": one for place, one in enumerate(types)}
    of_types = [f"{shown(one)}: {faults[place][0]}" for place, one in by_place.items() if place in faults]
    if "types" in faults:
        of_types.append(f"Types of events may be {TYPES_MAX} at most, but are {len(types)}.")
    return {**told, **({"types": of_types} if of_types else {})}


def to_webhook(webhook_id: int) -> Response:
    return redirect(url_for("console.webhook", webhook_id=webhook_id), 303)
