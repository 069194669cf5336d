"""Who is calling: the key in `Authorization`, its organization and its mode."""

import re

from flask import request

from app.api.record import record_in_hand
from app.api_keys import Caller, find_caller
from app.database import single_statement
from app.errors import InvalidKey
from app.keys import hash_key, is_well_formed

# One scheme word, one run of blanks, one key; RFC 9110 writes scheme names in any case.
_BEARER = re.compile(r"bearer +([\x21-\x7e]+) *\Z", re.IGNORECASE)


def well_formed_key_of_request() -> str | None:
    """Return the key that the request carries if its checksum holds, whatever it is worth; else None."""
    match = _BEARER.match(request.environ.get("HTTP_AUTHORIZATION", ""))
    return match[1] if match is not None and is_well_formed(match[1]) else None


def hash_of_key() -> bytes:
    """Return what the request's key is known by.

    Raises:
        InvalidKey: missing or malformed. The database is not asked about what cannot be a key.
    """
    key = well_formed_key_of_request()
    if key is None:
        raise InvalidKey
    return hash_key(key)


def caller() -> Caller:
    """Return whom the request comes from, by a statement of its own.

    Raises:
        InvalidKey: missing, malformed, unknown or revoked, all in the same words.
    """
    key_hash = hash_of_key()
    with single_statement() as connection:
        who = find_caller(connection, key_hash)
    record_in_hand().organization_id = who.organization.id
    return who
