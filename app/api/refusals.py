"""How calls are refused, as callers read it: each refusal is made of the errors of which it is the answer.

Here are those of many calls. One of a single call stands beside its view.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.api.auth import WrongKey
from app.api.envelope import CODES
from app.api.requests.body import TOO_SLOW
from app.batches.errors import BatchLost
from app.encryption import SecretsKeyMissing
from app.errors import (
    IdempotencyKeyReused,
    InsufficientScope,
    InvalidKey,
    InvalidRequest,
    NotFound,
    OutOfReach,
    PointsError,
)
from app.platform.keys import USERS_CHANGE
from app.reversals.accept import ReversalLost


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """One answer to a call that is refused.

    Args:
        codes: those that it may have; its examples have the first.
        beside: what the examples have beside the code.
        headers: those that not every answer has.
        examples: the fields with their sentences, by the name of the example.
    """

    name: str
    about: str
    status: int
    examples: Mapping[str, Mapping[str, str]]
    codes: Sequence[str] = ()
    beside: Mapping[str, int] = field(default_factory=dict)
    headers: Sequence[str] = ()


# What every call may refuse with the same status, and what such an answer has.
_USUAL_CODES = {403: ("insufficient_scope", "wrong_key"), 503: ("out_of_reach",)}
_HEADERS = {
    400: ("Connection", "Date", "Server", "Transfer-Encoding"),
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}


def refusal(name: str, about: str, *errors: PointsError | type[PointsError], examples: Sequence[str] = ()) -> Refusal:
    """Return the refusal by any of these errors, of one status. Those that are raised so are its examples.

    The names of the examples are `examples`, or that of the refusal.
    """
    raised = [error for error in errors if isinstance(error, PointsError)]
    names = examples or [_snake(name)]
    first = raised[0]
    codes = dict.fromkeys([*(error.code for error in errors), *_USUAL_CODES.get(first.status, ())])
    return Refusal(
        name=name,
        about=about,
        status=first.status,
        examples={
            each: {field: sentences[0] for field, sentences in error.faults.items()}
            for each, error in zip(names, raised, strict=True)
        },
        codes=() if first.status == 400 else tuple(codes),
        beside=first.beside,
        headers=_HEADERS.get(first.status, ()),
    )


def refusal_by(error: PointsError) -> Refusal:
    """Return the refusal by an error as it may be raised: the docstring of its class describes it."""
    if isinstance(error, NotFound):
        about = f"The organization has no such {error.noun} in this mode."
        return refusal(f"No{error.noun.capitalize()}", about, error)
    return refusal(type(error).__name__, type(error).__doc__ or "", error)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def bad_query(name: str, faults: Mapping[str, str]) -> Refusal:
    """Return the refusal of a query, with these faults as its example."""
    about = "The query has faults. `errors` names all of them, each under its parameter."
    return refusal(name, about, InvalidRequest({parameter: [sentence] for parameter, sentence in faults.items()}))


def _by_status(name: str, status: int, about: str, sentences: Mapping[str, str]) -> Refusal:
    """Return a refusal that no error of ours makes: its status decides the code."""
    codes, headers = (CODES[status],), _HEADERS.get(status, ())
    return Refusal(
        name=name, about=about, status=status, examples={_snake(name): sentences}, codes=codes, headers=headers
    )


_BAD_LIMIT = "The limit parameter must be an integer from 1 to 1000, but is “0”."

# Of all calls, of those with a key, and of those with a body.
_NO_REQUEST = Refusal(
    name="NoRequest",
    about="The bytes sent are not a well-formed HTTP request.",
    status=400,
    examples={},
    headers=_HEADERS[400],
)
_WRONG_METHOD = _by_status(
    "WrongMethod",
    405,
    "This path does not take this method.",
    {"method": "This path does not take this method; the Allow header names those it takes."},
)
_FAULT = _by_status(
    "Fault",
    500,
    "A fault of the service. A send may have been accepted: repeat it with the same `Idempotency-Key`.",
    {"service": "Something went wrong on our side. Quote the request id 5f0c2d9e when you report it."},
)
OF_ALL = (_NO_REQUEST, _WRONG_METHOD, _FAULT)

_UNAUTHORIZED = refusal(
    "Unauthorized",
    "The key is missing, malformed, unknown, expired or revoked; the answer does not say which.",
    InvalidKey(),
    examples=["key_missing"],
)
_TOO_MANY_CALLS = _by_status(
    "TooManyCalls",
    429,
    "The key has made too many calls.",
    {"rate_limit": "The rate limit of a key is 50/second. Wait for the seconds that Retry-After names."},
)
_AWAY = refusal(
    "Away",
    "The database is out of reach, or has lost the batch or reversal after a failover. A send may have been accepted:"
    " repeat it with the same `Idempotency-Key`.",
    *(OutOfReach(), BatchLost, ReversalLost),
    examples=["database_away"],
)
WITH_KEY = (_UNAUTHORIZED, _TOO_MANY_CALLS, _AWAY)
OF_ORGANIZATION = refusal(
    "WrongKey",
    "The key is a platform key, and this call takes one of an organization; or it has scopes, and none of this call.",
    WrongKey(),
    examples=["platform_key"],
)
OF_PLATFORM = refusal(
    "NotAllowed",
    "The key lacks the scope that the call needs; or it is one of an organization, and this call takes a platform key.",
    InsufficientScope(USERS_CHANGE),
    examples=["scope_missing"],
)

NO_QUERY = refusal(
    "NoQuery",
    "There is a query, which this call does not take, or the bytes sent are not a well-formed HTTP request.",
    InvalidRequest({"limit": ["There is no parameter of this name: this call takes no parameter."]}),
)
_NO_FIELDS = refusal(
    "NoFields",
    "There is a query, or a body with fields, which this call does not take; or the bytes sent are not a well-formed"
    " HTTP request.",
    InvalidRequest({"amount": ["There is no field of this name: this call takes no field."]}),
)
_TOO_SLOW = _by_status("TooSlow", 408, "The body came too slowly. The same call can be made again.", {"body": TOO_SLOW})
_TOO_LARGE = _by_status(
    "TooLarge", 413, "The body is too large.", {"body": "The body must have at most 8388608 bytes, but has more."}
)
_WRONG_TYPE = _by_status(
    "WrongType",
    415,
    "The body is not declared as JSON, or it is compressed.",
    {"content_type": "The Content-Type must be application/json, but is text/plain."},
)
_BAD_REQUEST = Refusal(
    name="BadRequest",
    about="The body has faults, or there is a query. `errors` names all faults, each under its field, and a bad entry"
    " under its place. Nothing was written.",
    status=400,
    examples={
        "everything_missing": {
            "recipient": "The recipient field is required when recipients is not present.",
            "recipients": "The recipients field is required when recipient is not present.",
            "amount": "The amount field is required.",
        },
        "bad_entries": {
            "recipients.1": "The entry must be an e-mail address: it has no @-sign.",
            "recipients.2": "The entry is the same address as recipients.0.",
            "amount": "The amount must be an integer, but is a string.",
        },
        "unknown_field": {"atomc": "There is no field of this name: did you mean atomic?"},
    },
    headers=_HEADERS[400],
)
WITH_BODY = (_BAD_REQUEST, _TOO_LARGE, _WRONG_TYPE, _TOO_SLOW)
WITHOUT_FIELDS = (_NO_FIELDS, _TOO_LARGE, _WRONG_TYPE, _TOO_SLOW)

# Of some calls.
BAD_QUERY = bad_query(
    "BadQuery",
    {
        "create_from": "There is no parameter of this name: did you mean created_from?",
        "limit": _BAD_LIMIT,
        "email": "The email parameter must be an e-mail address: it has no @-sign.",
        "debited": "The debited parameter must be true or false, but is “yes”.",
    },
)
BAD_LIST_QUERY = bad_query("BadListQuery", {"limit": _BAD_LIMIT})
NO_ORGANIZATION = refusal("NoOrganization", "There is no such organization.", NotFound("organization", 1))
KEY_REUSED = refusal("KeyReused", "The `Idempotency-Key` was used with a different body.", IdempotencyKeyReused())
# Of all calls that make something once.
MAKING_ONCE = (KEY_REUSED, refusal_by(SecretsKeyMissing()))
