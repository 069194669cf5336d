"""The body of verify and send, described from the settings and limits that `app/api/schemas.py` checks it by.

That module reports every fault of a body at once, which no model can be made to do, so the rules stand there as code.
`tests/unit/test_openapi_requests.py` holds the two together: what one takes, the other takes.
"""

from typing import Any

from app.api.schemas import LABEL_LENGTH_MAX
from app.settings import Settings

_MISSING = {"$ref": "#/components/schemas/Missing"}


def described(settings: Settings) -> dict[str, Any]:
    """Return the schemas of what callers send, with the limits of this service."""
    return {
        "Missing": {
            "description": "Counts as if the field were not there.",
            "enum": [None, "", []],
        },
        "Recipient": {
            "description": "An e-mail address of up to 254 characters; surrounding blanks are trimmed. International "
            "domains and local parts are allowed. Two addresses are the same when their normalised lower-case forms "
            "are equal; dots and plus signs are not folded.",
            "type": "string",
            "format": "idn-email",
            "pattern": "@",
        },
        "IssueRequest": {
            "description": "Points for some recipients. Fields that are not listed are ignored.",
            "type": "object",
            "required": ["amount"],
            "oneOf": [
                {
                    "title": "To a list",
                    "required": ["recipients"],
                    "properties": {"recipients": {"type": "array", "minItems": 1}, "recipient": _MISSING},
                },
                {
                    "title": "To one",
                    "required": ["recipient"],
                    "properties": {"recipient": {"type": "string", "minLength": 1}, "recipients": _MISSING},
                },
            ],
            "properties": _properties(settings),
        },
    }


def _properties(settings: Settings) -> dict[str, Any]:
    recipient = {"$ref": "#/components/schemas/Recipient"}
    once = "" if settings.allow_repeats else " No address twice."
    return {
        "recipients": {
            "description": f"E-mail addresses, in order. Required unless `recipient` is sent.{once}",
            "anyOf": [
                {
                    "type": "array",
                    "items": recipient,
                    "minItems": 1,
                    "maxItems": settings.recipients_max,
                    "uniqueItems": not settings.allow_repeats,
                },
                _MISSING,
            ],
        },
        "recipient": {
            "description": "One e-mail address, the same as a list of one. Required unless `recipients` is sent.",
            "anyOf": [recipient, _MISSING],
        },
        "amount": {
            "description": 'Points for **each** recipient. `10.0`, `1e1` and `"10"` are not integers.',
            "type": "integer",
            "format": "int64",
            "minimum": 1,
            "maximum": settings.amount_max,
        },
        "atomic": {
            "description": "True: debit nobody if the balance cannot pay the whole batch. Missing: false.",
            "anyOf": [{"type": "boolean"}, _MISSING],
        },
        "label": {
            "description": "Kept on every transaction of the batch. Missing: null.",
            "anyOf": [{"type": "string", "maxLength": LABEL_LENGTH_MAX, "pattern": "^[^\\u0000]*$"}, _MISSING],
        },
    }
