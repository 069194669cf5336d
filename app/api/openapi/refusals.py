"""The answers of every error: their status, their headers and what they mean."""

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
