"""The description of verify and send."""

from typing import Any

from app.api.openapi.headers import answered, parameter
from app.api.openapi.refusals import json_content, refused

_BODY = {"required": True, "content": json_content("IssueRequest", "to_two", "to_one", "all_or_nobody")}
_BATCH = {"operationId": "showBatch", "parameters": {"id": "$response.body#/additional_data/batch_id"}}

PATHS: dict[str, Any] = {
    "/v1/points/verify": {
        "post": {
            "operationId": "verify",
            "tags": ["Points"],
            "summary": "Ask whether an issue is possible",
            "description": "A check only: nothing is written and nothing is reserved. The body is that of a send, and "
            "so are its faults. A refusal is 200 too, with `validated: false`: the balance does not pay the whole "
            "batch, or the organization is disabled or suspended.",
            "parameters": [parameter("X-Request-Id")],
            "requestBody": _BODY,
            "responses": {
                "200": {
                    "description": "The verdict.",
                    "headers": answered(),
                    "content": json_content("VerifyAnswer", "possible", "balance_too_low", "may_not_issue"),
                },
                **refused(400, 401, 405, 413, 415, 429, 500, 503),
            },
        }
    },
    "/v1/points/send": {
        "post": {
            "operationId": "send",
            "tags": ["Points"],
            "summary": "Issue points",
            "description": "Debits the organization and writes one transaction per recipient, in the order of the "
            "request, exactly once. Recipients are served while the balance lasts; the rest get `debited: false`, and "
            "the answer is 201 all the same, unless `atomic` is true. Points of a recipient without an account are "
            "held until there is one.\n\nSend an `Idempotency-Key`: with it, a call whose answer was lost can be "
            "repeated at will.",
            "parameters": [parameter(name) for name in ("Idempotency-Key", "Prefer", "X-Request-Id")],
            "requestBody": _BODY,
            "responses": {
                "201": {
                    "description": "The batch is issued. With an `Idempotency-Key` that names a batch issued before, "
                    "that batch, as it was answered then.",
                    "headers": answered("Idempotency-Replayed"),
                    "content": json_content("SendAnswer", "issued", "issued_in_part"),
                    "links": {"batch": _BATCH},
                },
                "202": {
                    "description": "The batch is accepted and will be issued exactly once: the caller preferred not "
                    "to wait, or the wait ran out.",
                    "headers": answered("Location", "Retry-After"),
                    "content": json_content("QueuedAnswer", "queued"),
                    "links": {"batch": _BATCH},
                },
                **refused(400, 401, 403, 405, 413, 415, 422, 429, 500, 503),
            },
        }
    },
}
