"""`/v1/webhooks`: make, list, show, change and delete webhooks; what else is done with one; its deliveries."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from flask import Blueprint, Response
from sqlalchemy import Connection

from app.api.answers import envelope
from app.api.answers.webhooks import delivery_payload, webhook_payload
from app.api.auth import caller, caller_without_query
from app.api.listing import page_answer
from app.api.requests.body import read_json, refuse_fields
from app.api_keys import Caller
from app.pages import delivery_pages
from app.postgres.database import transaction
from app.webhooks import actions, webhooks
from app.webhooks.request import FROM_SEQUENCE, read_webhook
from app.webhooks.secrets import require_key
from app.webhooks.webhooks import WebhookRow

blueprint = Blueprint("webhooks", __name__)


@blueprint.post("/v1/webhooks")
def create() -> Response:
    """Answer 201 with the webhook and its secret, shown once. Deliveries begin after the last event so far."""
    who = caller_without_query()
    require_key()  # Without it no webhook can be made, whatever the body says.
    columns = read_json(partial(read_webhook, is_new=True))
    with transaction() as connection:
        webhook, secret = actions.make(connection, columns, organization_id=who.organization.id, sandbox=who.sandbox)
    response = envelope.success(webhook_payload(webhook, secret=secret), status=201)
    response.headers["Location"] = f"/v1/webhooks/{webhook.id}"
    return response


@blueprint.get("/v1/webhooks")
def list_webhooks() -> Response:
    """Answer 200 with all webhooks of the organization in the key's mode, oldest first, on one page."""
    who = caller_without_query()
    with transaction() as connection:
        found = webhooks.find_all(connection, organization_id=who.organization.id, sandbox=who.sandbox)
    return envelope.success({"webhooks": [webhook_payload(webhook) for webhook in found], "next_cursor": None})


@blueprint.get("/v1/webhooks/<int:webhook_id>")
def show(webhook_id: int) -> Response:
    """Answer 200 with the webhook; 404 also for a webhook of another organization or mode."""
    who = caller_without_query()
    with transaction() as connection:
        webhook = webhooks.get(connection, webhook_id, organization_id=who.organization.id, sandbox=who.sandbox)
    return envelope.success(webhook_payload(webhook))


@blueprint.patch("/v1/webhooks/<int:webhook_id>")
def change(webhook_id: int) -> Response:
    """Answer 200 with the changed webhook. A new URL is tried at once, and starts with no failures."""
    who = caller_without_query()
    columns = read_json(partial(read_webhook, is_new=False))
    webhook = actions.act(
        webhook_id,
        lambda connection, found: actions.edit(connection, found, columns),
        organization_id=who.organization.id,
        sandbox=who.sandbox,
    )
    return envelope.success(webhook_payload(webhook))


@blueprint.delete("/v1/webhooks/<int:webhook_id>")
def delete(webhook_id: int) -> Response:
    """Answer 204, without a body."""
    who = caller_without_query()
    refuse_fields()
    actions.act(webhook_id, actions.delete, organization_id=who.organization.id, sandbox=who.sandbox)
    return envelope.nothing()


_PATH = "/v1/webhooks/<int:webhook_id>"

_Outcome = TypeVar("_Outcome")


def _act(who: Caller, webhook_id: int, action: Callable[[Connection, WebhookRow], _Outcome]) -> _Outcome:
    return actions.act(webhook_id, action, organization_id=who.organization.id, sandbox=who.sandbox)


def _answer(webhook_id: int, action: Callable[[Connection, WebhookRow], WebhookRow]) -> Response:
    who = caller_without_query()
    refuse_fields()
    return envelope.success(webhook_payload(_act(who, webhook_id, action)))


@blueprint.post(f"{_PATH}/ping")
def ping(webhook_id: int) -> Response:
    """Answer 200 with the webhook. A `ping` event is written, and sent to this webhook only, in order."""
    return _answer(webhook_id, actions.ping)


@blueprint.post(f"{_PATH}/disable")
def disable(webhook_id: int) -> Response:
    """Answer 200 with the webhook, also if it was disabled before."""
    return _answer(webhook_id, actions.disable)


@blueprint.post(f"{_PATH}/enable")
def enable(webhook_id: int) -> Response:
    """Answer 200 with the webhook. Deliveries go on from its position at once."""
    return _answer(webhook_id, actions.enable)


@blueprint.post(f"{_PATH}/skip")
def skip(webhook_id: int) -> Response:
    """Answer 200 with the webhook. It skips the event that it is stuck at."""
    return _answer(webhook_id, actions.skip)


@blueprint.post(f"{_PATH}/rotate")
def rotate(webhook_id: int) -> Response:
    """Answer 200 with the webhook and its new secret, shown once. The old secret signs too for 24 hours."""
    who = caller_without_query()
    refuse_fields()
    webhook, secret = _act(who, webhook_id, actions.rotate)
    return envelope.success(webhook_payload(webhook, secret=secret))


@blueprint.post(f"{_PATH}/replay")
def replay(webhook_id: int) -> Response:
    """Answer 200 with the webhook. It sends events again, from one that it has passed."""
    who = caller_without_query()
    sequence = read_json(FROM_SEQUENCE.read_alone)
    webhook = _act(who, webhook_id, lambda connection, found: actions.replay(connection, found, sequence))
    return envelope.success(webhook_payload(webhook))


@blueprint.get("/v1/webhooks/<int:webhook_id>/deliveries")
def list_deliveries(webhook_id: int) -> Response:
    """Answer 200 with a page of the attempts."""
    who = caller()
    require = partial(webhooks.get, webhook_id=webhook_id, organization_id=who.organization.id, sandbox=who.sandbox)
    return page_answer("deliveries", who, delivery_pages.page, delivery_payload, require=require, webhook_id=webhook_id)
