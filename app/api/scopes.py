"""Which scope each call of an organization needs, of a key that has scopes. Any other key may make every call."""

import re
from functools import cache

from flask import request

from app.values.key_bounds import APPROVE, READ, REVERSE, SEND, WEBHOOKS

# The call needs one of these. Who may send or reverse may also read what became of it: only its own, see the views.
SCOPES_OF_CALLS: dict[str, tuple[str, ...]] = {
    "POST /v1/points/verify": (SEND,),
    "POST /v1/points/sent-before": (SEND,),
    "POST /v1/points/send": (SEND,),
    "PATCH /v1/batches/{id}": (SEND,),
    "POST /v1/batches/{id}/cancel": (SEND,),
    "POST /v1/batches/{id}/approve": (APPROVE,),
    "POST /v1/batches/{id}/reject": (APPROVE,),
    "POST /v1/transactions/{id}/extend": (SEND,),
    "POST /v1/points/reverse/verify": (REVERSE,),
    "POST /v1/points/reverse": (REVERSE,),
    "GET /v1/batches": (READ,),
    "GET /v1/batches/{id}": (READ, SEND),
    "GET /v1/transactions": (READ,),
    "GET /v1/transactions/{id}": (READ,),
    "GET /v1/reversals": (READ,),
    "GET /v1/reversals/{id}": (READ, REVERSE),
    "GET /v1/events": (READ,),
    "GET /v1/requests": (READ,),
    "GET /v1/statement": (READ,),
    "GET /v1/organization": (),
    "POST /v1/webhooks": (WEBHOOKS,),
    "GET /v1/webhooks": (WEBHOOKS,),
    "GET /v1/webhooks/{id}": (WEBHOOKS,),
    "PATCH /v1/webhooks/{id}": (WEBHOOKS,),
    "DELETE /v1/webhooks/{id}": (WEBHOOKS,),
    "POST /v1/webhooks/{id}/ping": (WEBHOOKS,),
    "POST /v1/webhooks/{id}/rotate": (WEBHOOKS,),
    "POST /v1/webhooks/{id}/disable": (WEBHOOKS,),
    "POST /v1/webhooks/{id}/enable": (WEBHOOKS,),
    "POST /v1/webhooks/{id}/replay": (WEBHOOKS,),
    "POST /v1/webhooks/{id}/skip": (WEBHOOKS,),
    "GET /v1/webhooks/{id}/deliveries": (WEBHOOKS,),
    "POST /v1/sandbox/reset": (SEND,),
    "POST /v1/sandbox/clock": (SEND,),
    "POST /v1/sandbox/users": (SEND,),
}


def scopes_needed() -> tuple[str, ...]:
    """Return the scopes of which the request's call needs one; none: every key may make it."""
    assert request.url_rule is not None, "only a call that exists asks for its caller"
    method = "GET" if request.method == "HEAD" else request.method
    return SCOPES_OF_CALLS[f"{method} {path_of(request.url_rule.rule)}"]


@cache
def path_of(rule: str) -> str:
    """Return the template of a path as the description writes it: `/v1/batches/{id}`."""
    return re.sub("<[^>]+>", "{id}", rule)
