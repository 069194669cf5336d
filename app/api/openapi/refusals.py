"""The answers of every error: their status, their headers and an example of each."""

from collections.abc import Mapping
from typing import Any

from app.api.openapi.headers import answered

# What a 400 carries besides, as the interface document says.
_OF_A_400: dict[str, Any] = {
    name: {"description": description, "required": True, "schema": {"type": "string"}}
    for name, description in {
        "Connection": "Whether the connection is kept.",
        "Date": "When the answer was made.",
        "Server": "The server, without a version.",
        "Transfer-Encoding": "`chunked`.",
    }.items()
}


def _failure(**errors: list[str]) -> dict[str, Any]:
    return {"success": False, "data": None, "errors": errors, "additional_data": None}


EXAMPLES: dict[str, Any] = {
    "everything_missing": _failure(
        recipient=["The recipient field is required when recipients is not present."],
        recipients=["The recipients field is required when recipient is not present."],
        amount=["The amount field is required."],
    ),
    "bad_entries": _failure(
        **{
            "recipients.1": ["The entry must be an e-mail address: it has no @-sign."],
            "recipients.2": ["The entry is the same address as recipients.0."],
            "amount": ["The amount must be an integer, but is a string."],
        }
    ),
    "no_key": _failure(authorization=["A valid API key is required, sent as `Authorization: Bearer <key>`."]),
    "bad_query": _failure(
        limit=["The limit must be an integer from 1 to 1000."],
        email=["The email must be an e-mail address: it has no @-sign."],
        debited=["The debited must be true or false."],
    ),
    "live_key": _failure(authorization=["Only a development key may reset the sandbox, but this is a live key."]),
    "no_transaction": _failure(transaction=["There is no transaction 131072."]),
    "suspended": _failure(
        organization=["The organization is suspended and cannot issue points until it is resumed."],
    ),
    "no_batch": _failure(batch=["There is no batch 1."]),
    "wrong_method": _failure(
        method=["This path does not take this method; the Allow header names those it takes."],
    ),
    "too_large": _failure(body=["The body must have at most 8388608 bytes, but has more."]),
    "wrong_type": _failure(content_type=["The Content-Type must be application/json, but is text/plain."]),
    "key_reused": _failure(
        idempotency_key=["This Idempotency-Key was used with another body; send a new key for a new batch."],
    ),
    "too_many_calls": _failure(
        rate_limit=["This key may make 50/second calls. Wait as long as Retry-After says, in seconds."],
    ),
    "fault": _failure(
        service=["Something went wrong on our side. Name the request 5f0c2d9e when you report it."],
    ),
    "database_away": _failure(service=["The service is out of reach of its database. Try again soon."]),
    "not_ready": _failure(
        postgresql=["PostgreSQL is out of reach, or has no tables yet."],
        redis=["Redis is out of reach."],
    ),
}


def json_content(schema: str, *examples: str) -> dict[str, Any]:
    """Return a content of JSON with this schema and these examples, all by name."""
    content: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    if examples:
        content["examples"] = {name: {"$ref": f"#/components/examples/{name}"} for name in examples}
    return {"application/json": content}


def _refusal(description: str, *examples: str, headers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "description": description,
        "headers": answered() if headers is None else headers,
        "content": json_content("Failure", *examples),
    }


RESPONSES: dict[str, Any] = {
    "BadRequest": _refusal(
        "The body has faults; all of them are named, each under its field, a bad entry under its place. "
        "Nothing was written.",
        "everything_missing",
        "bad_entries",
        headers=answered() | _OF_A_400,
    ),
    "BadQuery": _refusal(
        "The query has faults; all of them are named, each under its parameter.",
        "bad_query",
        headers=answered() | _OF_A_400,
    ),
    "NoRequest": _refusal("The bytes sent are no well-formed HTTP request.", headers=answered() | _OF_A_400),
    "Unauthorized": _refusal(
        "The key is missing, malformed, unknown or revoked; which of them is not told.",
        "no_key",
        headers=answered("WWW-Authenticate"),
    ),
    "Forbidden": _refusal("The organization is disabled or suspended. Nothing was written.", "suspended"),
    "NoBatch": _refusal(
        "There is no such batch, or it is another organization's, or the other mode's.",
        "no_batch",
    ),
    "NoTransaction": _refusal(
        "There is no such transaction, or it is another organization's, or the other mode's.",
        "no_transaction",
    ),
    "LiveKey": _refusal("The key is a live one, and only the sandbox can be reset.", "live_key"),
    "WrongMethod": _refusal(
        "This path was called with a method that it does not take.", "wrong_method", headers=answered("Allow")
    ),
    "TooLarge": _refusal("The body is too large.", "too_large"),
    "WrongType": _refusal("The body is not declared as JSON, or is compressed.", "wrong_type"),
    "KeyReused": _refusal("The `Idempotency-Key` was used with a body of another meaning.", "key_reused"),
    "TooManyCalls": _refusal(
        "The key makes more calls than it may.", "too_many_calls", headers=answered("Retry-After")
    ),
    "Fault": _refusal(
        "A fault of the service. A send may or may not have been accepted: repeat it with the same `Idempotency-Key`.",
        "fault",
    ),
    "Away": _refusal(
        "The database is out of reach. A send may or may not have been accepted: repeat it with the same "
        "`Idempotency-Key`.",
        "database_away",
        headers=answered("Retry-After"),
    ),
    "NotReady": _refusal("PostgreSQL or Redis is out of reach; `errors` names which.", "not_ready"),
}

_NAMES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    405: "WrongMethod",
    413: "TooLarge",
    415: "WrongType",
    422: "KeyReused",
    429: "TooManyCalls",
    500: "Fault",
    503: "Away",
}


def refused(*statuses: int, **named: str) -> dict[str, Any]:
    """Return the answers of these errors, by status; `named` gives one a description of its own (`s404="NoBatch"`)."""
    names = {str(status): _NAMES[status] for status in statuses} | {name[1:]: to for name, to in named.items()}
    return {status: {"$ref": f"#/components/responses/{name}"} for status, name in sorted(names.items())}
