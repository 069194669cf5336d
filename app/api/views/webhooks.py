"""`/v1/webhooks`: the webhooks of an organization, what is done with them, and their deliveries."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from flask import Response
from pydantic import create_model
from sqlalchemy import Connection

from app.api import envelope
from app.api.calls import Answer, call
from app.api.listing import page_answer
from app.api.refusals import BAD_QUERY
from app.api_keys import Caller
from app.encryption import require_key
from app.errors import NotFound
from app.noun import Action
from app.noun_fields import Null, says
from app.pages import lists
from app.postgres.database import single_statement, transaction
from app.values.key_bounds import WEBHOOKS
from app.webhooks import actions
from app.webhooks.actions import REPLAY
from app.webhooks.webhook import WEBHOOKS_MAX, Webhook, WebhookLimit, deliveries, webhooks

_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="  # noqa: S105  # nosec B105  # An example.
_NewSecret = create_model(
    "NewSecret",
    __base__=webhooks.model,
    __doc__="A webhook with its new secret, which is shown only in this answer.",
    secret=(str, says("For verifying signatures. It is shown once: store it now.", _SECRET)),
)
_WebhookList = create_model(
    "WebhookList",
    __doc__="All webhooks, oldest first, on one page.",
    webhooks=(list[webhooks.model], says("The webhooks.")),  # type: ignore[name-defined]
    next_cursor=(Null, says("Always null: there is no other page.", None)),
)
# What differs in the examples of the actions.
_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "rotate": {"old_secret_until": "2026-02-01T09:00:00.000000Z"},  # nosec B105  # A moment.
    "disable": {"status": "disabled", "disabled_reason": "caller"},
    "replay": {"position": 0},
    "skip": {"status": "failing", "failing_since": "2026-01-31T09:30:00.492913Z"},
}
_NONE = NotFound("webhook", 1)
_of_webhooks = partial(call, group="Webhooks", scopes=(WEBHOOKS,))


def _payload(outcome: Webhook | tuple[Webhook, str]) -> dict[str, Any]:
    """Return the body of a webhook, with its secret if that is shown now."""
    if isinstance(outcome, Webhook):
        return webhooks.payload(outcome)
    webhook, secret = outcome
    return webhooks.payload(webhook) | {"secret": secret}


def _act(who: Caller, webhook_id: int, rule: Callable[..., Any], **values: Any) -> Any:
    with transaction() as connection:
        return _act_in(connection, who, webhook_id, rule, **values)


def _act_in(connection: Connection, who: Caller, webhook_id: int, rule: Callable[..., Any], **values: Any) -> Any:
    # Locked: otherwise two who act at once both see the webhook as it was before the other.
    return rule(connection, webhooks.get(connection, webhook_id, who.scope, lock=True), **values)


@_of_webhooks(
    "POST /v1/webhooks",
    "Have events sent to a URL",
    first=lambda _: require_key(),  # Without it no webhook can be made, whatever the body says.
    body=webhooks.new,
    sent={"new_webhook": {"url": "https://shop.example.com/points", "types": ["batch.*"], "description": "The shop"}},
    answers=Answer(
        status=201,
        about="The webhook, with its secret.",
        data=_NewSecret,
        headers=["Location"],
        examples={"webhook_made": {}},
    ),
    makes_once=True,
    refuses=[WebhookLimit(WEBHOOKS_MAX)],
)
def create_webhook(who: Caller, connection: Connection, **values: Any) -> Response:
    """Starts after the last event so far. The signing `secret` is shown only in this answer. An organization may have
    ten webhooks in each mode.
    """
    webhook, secret = actions.make(connection, who.scope, values)
    response = envelope.success(_payload((webhook, secret)), status=201)
    response.headers["Location"] = f"/v1/webhooks/{webhook.id}"
    return response


@_of_webhooks(
    "GET /v1/webhooks",
    "All webhooks",
    answers=Answer(about="The webhooks.", data=_WebhookList, examples={"webhooks": {}}),
)
def list_webhooks(who: Caller) -> dict[str, Any]:
    """The organization's webhooks in the key's mode, as they are now, oldest first."""
    with single_statement() as connection:
        rows = webhooks.all(connection, who.scope)
    return {"webhooks": list(map(webhooks.payload, rows)), "next_cursor": None}


@_of_webhooks(
    "GET /v1/webhooks/{id}",
    "One webhook, as it is now",
    answers=Answer(about="The webhook.", data=webhooks.model, examples={"webhook": {}}),
    refuses=[_NONE],
)
def show_webhook(who: Caller, webhook_id: int) -> dict[str, Any]:
    """Shows its position in the log, and whether it fails."""
    with single_statement() as connection:
        return webhooks.payload(webhooks.get(connection, webhook_id, who.scope))


@_of_webhooks(
    "PATCH /v1/webhooks/{id}",
    "Change a webhook",
    body=webhooks.changed,
    sent={"changed_webhook": {"types": ["*"], "description": None}},
    answers=Answer(
        about="The webhook, changed.",
        data=webhooks.model,
        examples={"webhook_changed": {"types": ["*"], "description": None}},
    ),
    refuses=[_NONE],
)
def change_webhook(who: Caller, webhook_id: int, **values: Any) -> dict[str, Any]:
    """A new URL is tried at once and starts with no failures; the position stays."""
    return _payload(_act(who, webhook_id, partial(actions.change, values=values)))


@_of_webhooks(
    "DELETE /v1/webhooks/{id}",
    "Delete a webhook",
    answers=Answer(status=204, about="It is deleted. There is no body."),
    refuses=[_NONE],
)
def delete_webhook(who: Caller, webhook_id: int) -> None:
    """Nothing more is sent to it, except an attempt that is under way."""
    _act(who, webhook_id, webhooks.delete)


def _declare(name: str, action: Action) -> None:
    """Declare the call of an action."""
    makes_secret = name == "rotate"
    data = _NewSecret if makes_secret else webhooks.model
    declared = _of_webhooks(
        f"POST /v1/webhooks/{{id}}/{name}",
        action.summary,
        name=f"{name}Webhook",
        about=action.about,
        body=action.body,
        sent={"from_the_first": {"from_sequence": 1}} if action.body is REPLAY else {},
        answers=Answer(about=action.answers, data=data, examples={f"webhook_{name}": _EXAMPLES.get(name, {})}),
        refuses=[_NONE, *action.refuses],
        makes_once=makes_secret,
    )

    def act(who: Caller, webhook_id: int, **values: Any) -> dict[str, Any]:
        return _payload(_act(who, webhook_id, action.rule, **values))

    def act_once(who: Caller, connection: Connection, webhook_id: int) -> dict[str, Any]:
        return _payload(_act_in(connection, who, webhook_id, action.rule))

    declared(act_once if makes_secret else act)


for _name, _action in webhooks.actions.items():
    _declare(_name, _action)


@_of_webhooks(
    "GET /v1/webhooks/{id}/deliveries",
    "Delivery attempts, page by page",
    query="deliveries",
    answers=Answer(
        about="A page of the list.",
        data=deliveries.page("attempts"),
        examples={"deliveries": {}},
    ),
    refuses=[_NONE, BAD_QUERY],
)
def list_deliveries(who: Caller, webhook_id: int) -> Response:
    """The attempts of the last 30 days, newest first. A page holds up to `limit` of them; `next_cursor` leads to the
    next page.
    """
    require = partial(webhooks.get, row_id=webhook_id, scope=who.scope)
    return page_answer("deliveries", who, lists.deliveries, deliveries.payload, require=require, webhook_id=webhook_id)
