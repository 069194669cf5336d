"""The examples of every error, as the service words them. A test gets each from a running service."""

from typing import Any


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
        limit=["The limit parameter must be an integer from 1 to 1000."],
        email=["The email parameter must be an e-mail address: it has no @-sign."],
        debited=["The debited parameter must be true or false."],
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
        rate_limit=["The rate limit of a key is 50/second. Wait as long as Retry-After says, in seconds."],
    ),
    "fault": _failure(
        service=["Something went wrong on our side. Quote the request id 5f0c2d9e when you report it."],
    ),
    "database_away": _failure(service=["The service is out of reach of its database. Try again soon."]),
    "not_ready": _failure(
        postgresql=["PostgreSQL is out of reach, or has no tables yet."],
        redis=["Redis is out of reach."],
    ),
}
