"""`POST /v1/webhooks/{id}/…`: ping, rotate, disable, enable, replay and skip."""

from collections.abc import Callable
from typing import TypeVar

from flask import Blueprint, Response
from sqlalchemy import Connection

from app.api.answers import envelope
from app.api.answers.webhooks import webhook_payload
from app.api.auth import caller
from app.api.requests.body import read_json, refuse_fields
from app.api.requests.query import refuse_parameters
from app.api_keys import Caller
from app.webhooks import actions
from app.webhooks.request import FROM_SEQUENCE
from app.webhooks.webhooks import WebhookRow

blueprint = Blueprint("webhook_actions", __name__)

_PATH = "/v1/webhooks/<int:webhook_id>"

_Outcome = TypeVar("_Outcome")


def _act(who: Caller, webhook_id: int, action: Callable[[Connection, WebhookRow], _Outcome]) -> _Outcome:
    return actions.act(webhook_id, action, organization_id=who.organization.id, sandbox=who.sandbox)


def _answer(webhook_id: int, action: Callable[[Connection, WebhookRow], WebhookRow]) -> Response:
    who = caller()
    refuse_parameters()
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
    who = caller()
    refuse_parameters()
    refuse_fields()
    webhook, secret = _act(who, webhook_id, actions.rotate)
    return envelope.success(webhook_payload(webhook, secret=secret))


@blueprint.post(f"{_PATH}/replay")
def replay(webhook_id: int) -> Response:
    """Answer 200 with the webhook. It sends events again, from one that it has passed."""
    who = caller()
    refuse_parameters()
    sequence = read_json(FROM_SEQUENCE.read_alone)
    webhook = _act(who, webhook_id, lambda connection, found: actions.replay(connection, found, sequence))
    return envelope.success(webhook_payload(webhook))
