"""Who is calling: the key in `Authorization`, its organization and its mode."""

import re

from flask import request
from sqlalchemy import Connection

from app.api_keys import Caller, find_caller
from app.errors import InvalidKey

# One scheme word, one run of blanks, one key; RFC 9110 writes scheme names in any case.
_BEARER = re.compile(r"bearer +([\x21-\x7e]+) *\Z", re.IGNORECASE)


def key_of_request() -> str:
    """Return the key that the request carries, whatever it is worth.

    Raises:
        InvalidKey: there is none, or the header has another form. Asked before the body is read.
    """
    match = _BEARER.match(request.headers.get("Authorization", ""))
    if match is None:
        raise InvalidKey
    return match[1]


def caller(connection: Connection) -> Caller:
    """Return whom the request comes from.

    Raises:
        InvalidKey: missing, malformed, unknown or revoked, all in the same words.
    """
    return find_caller(connection, key_of_request())
