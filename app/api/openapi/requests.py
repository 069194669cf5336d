"""The body of verify and send, described from the settings and limits that `app/api/schemas.py` checks it by.

That module reports every fault of a body at once, which no model can be made to do, so the rules stand there as code.
`tests/unit/test_openapi_requests.py` holds the two together: what is described is taken.

Two whole schemas, to a list and to one, in forms that the generators of clients can read. So it is said in words only
that an empty text or array counts as missing, and that of two recipients fields one must be missing.
"""

from typing import Any

from app.api.schemas import LABEL_LENGTH_MAX
from app.settings import Settings

_RECIPIENT = {"$ref": "#/components/schemas/Recipient"}


def described(settings: Settings) -> dict[str, Any]:
    """Return the schemas of what callers send, with the limits of this service."""
    return {
        "Recipient": {
            "description": "An e-mail address of up to 254 characters; surrounding blanks are trimmed. International "
            "domains and local parts are allowed. Two addresses are the same when their normalised lower-case forms "
            "are equal; dots and plus signs are not folded.",
            "type": "string",
            "format": "idn-email",
            "pattern": "@",
        },
        "IssueRequest": {
            "description": 'Points for some recipients: `recipients` or `recipient`, not both. Null, `""` and `[]` '
            "count as if the field were not there. Fields that are not listed are ignored.",
            "oneOf": [
                {"$ref": "#/components/schemas/IssueToMany"},
                {"$ref": "#/components/schemas/IssueToOne"},
            ],
        },
        "IssueToMany": _issue("Points for a list of recipients.", "recipients", _recipients(settings), settings),
        "IssueToOne": _issue("Points for one recipient.", "recipient", _recipient(), settings),
    }


def _recipients(settings: Settings) -> dict[str, Any]:
    once = "" if settings.allow_repeats else " No address twice."
    return {
        "description": f"E-mail addresses, in order. Required unless `recipient` is sent.{once}",
        "type": "array",
        "items": _RECIPIENT,
        "minItems": 1,
        "maxItems": settings.recipients_max,
        "uniqueItems": not settings.allow_repeats,
    }


def _recipient() -> dict[str, Any]:
    return {
        "description": "One e-mail address, the same as a list of one. Required unless `recipients` is sent.",
        **_RECIPIENT,
    }


def _issue(description: str, field: str, recipients: dict[str, Any], settings: Settings) -> dict[str, Any]:
    return {
        "description": description,
        "type": "object",
        "required": [field, "amount"],
        "properties": {
            field: recipients,
            "amount": {
                "description": 'Points for **each** recipient. `10.0`, `1e1` and `"10"` are not integers.',
                "type": "integer",
                "format": "int64",
                "minimum": 1,
                "maximum": settings.amount_max,
            },
            "atomic": {
                "description": "True: debit nobody if the balance cannot pay the whole batch. Missing: false.",
                "type": ["boolean", "null"],
            },
            "label": {
                "description": "Kept on every transaction of the batch. Missing: null.",
                "type": ["string", "null"],
                "maxLength": LABEL_LENGTH_MAX,
                "pattern": "^[^\\u0000]*$",
            },
        },
    }
