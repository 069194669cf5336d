"""`/v1/webhooks` and `/v1/webhooks/{id}`: make, list, show, change and delete the webhooks of an organization."""

from functools import partial

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.answers.webhooks import webhook_payload
from app.api.auth import caller
from app.api.requests.body import read_json, refuse_fields
from app.api.requests.query import refuse_parameters
from app.postgres.database import transaction
from app.webhooks import actions, webhooks
from app.webhooks.request import read_webhook
from app.webhooks.secrets import require_key

blueprint = Blueprint("webhooks", __name__)


@blueprint.post("/v1/webhooks")
def create() -> Response:
    """Answer 201 with the webhook and its secret, shown once. Deliveries begin after the last event so far.

    Raises:
        InvalidRequest: with every fault of the body.
        WebhookLimit: the organization has ten webhooks in this mode already.
        SecretsKeyMissing: the operator has set no key for secrets.
    """
    who = caller()
    refuse_parameters()
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
    who = caller()
    refuse_parameters()
    with transaction() as connection:
        found = webhooks.find_all(connection, organization_id=who.organization.id, sandbox=who.sandbox)
    return envelope.success({"webhooks": [webhook_payload(webhook) for webhook in found], "next_cursor": None})


@blueprint.get("/v1/webhooks/<int:webhook_id>")
def show(webhook_id: int) -> Response:
    """Answer 200 with the webhook; 404 also for a webhook of another organization or mode."""
    who = caller()
    refuse_parameters()
    with transaction() as connection:
        webhook = webhooks.get(connection, webhook_id, organization_id=who.organization.id, sandbox=who.sandbox)
    return envelope.success(webhook_payload(webhook))


@blueprint.patch("/v1/webhooks/<int:webhook_id>")
def change(webhook_id: int) -> Response:
    """Answer 200 with the changed webhook. A new URL is tried at once, and starts with no failures.

    Raises:
        InvalidRequest: with every fault of the body.
        NotFound: the caller has no such webhook.
    """
    who = caller()
    refuse_parameters()
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
    """Answer 204, without a body.

    Raises:
        NotFound: the caller has no such webhook.
    """
    who = caller()
    refuse_parameters()
    refuse_fields()
    actions.act(webhook_id, actions.delete, organization_id=who.organization.id, sandbox=who.sandbox)
    return envelope.nothing()
