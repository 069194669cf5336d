"""The caller: the key in `Authorization`, its organization and its mode, or what a platform key may do."""

import re

from flask import request

from app.api_keys import Caller, get_caller
from app.errors import InsufficientScope, InvalidKey, PointsError
from app.metrics.requests import current_record
from app.platform import keys as platform_keys
from app.platform.keys import PlatformCaller
from app.postgres.database import single_statement
from app.values.key_hashes import DEVELOPMENT_PREFIX, PLATFORM_PREFIX, hash_key, is_well_formed

# One scheme word, one run of blanks, one key; RFC 9110 writes scheme names in any case.
_BEARER = re.compile(r"bearer +([\x21-\x7e]+) *\Z", re.IGNORECASE)

# By the endpoint of a call of organizations, as `@call` declares it: a key that has scopes needs one of these. Where
# none is named, every key may make the call.
SCOPES_OF_ENDPOINTS: dict[str, tuple[str, ...]] = {}


class WrongKey(PointsError):
    """A good key of the wrong kind: a platform key for a call of organizations, or an organization's key elsewhere."""

    status = 403
    field = "authorization"
    says = "This call takes a key of an organization, but this is a platform key."


def _well_formed_key_of_request() -> str | None:
    """Return the request's key if its checksum is right, else None. The database is not asked."""
    match = _BEARER.match(request.environ.get("HTTP_AUTHORIZATION", ""))
    return match[1] if match is not None and is_well_formed(match[1]) else None


def hash_of_given_key() -> bytes | None:
    """Return the hash of the request's key if its checksum is right, else None. It is noted in the record."""
    record = current_record()
    if record.key_hash is None and (key := _well_formed_key_of_request()) is not None:
        record.key_hash = hash_key(key)
    return record.key_hash


def hash_of_key() -> bytes:
    """Return the hash of the request's key. The database is asked only about a platform key, which is refused.

    Raises:
        InvalidKey: the key is missing or malformed.
        WrongKey: it is a platform key.
    """
    key_hash = hash_of_given_key()
    if key_hash is None:
        raise InvalidKey
    if _is_platform_key():
        with single_statement() as connection:
            platform_keys.get_caller(connection, key_hash)
        raise WrongKey
    return key_hash


def _is_platform_key() -> bool:
    """Tell whether the request's key, known to be well-formed, is one of the platform: no other holds this prefix."""
    return PLATFORM_PREFIX in request.environ["HTTP_AUTHORIZATION"]


def is_development_key() -> bool:
    """Tell whether the request's well-formed key is one for the sandbox. The database is not asked."""
    # A part of the well-formed header, as above: it was read once already.
    return hash_of_given_key() is not None and DEVELOPMENT_PREFIX in request.environ["HTTP_AUTHORIZATION"]


def caller() -> Caller:
    """Find the caller of the request, with one statement.

    Raises:
        InvalidKey: the key is missing, malformed, unknown, expired or revoked; the sentence is the same for all.
        WrongKey: it is a platform key.
        InsufficientScope: the key has scopes, and none that the call needs.
    """
    key_hash = hash_of_key()
    with single_statement() as connection:
        found = get_caller(connection, key_hash)
    current_record().organization_id = found.organization.id
    if found.bounds.scopes is not None:
        needed = SCOPES_OF_ENDPOINTS[request.endpoint or ""]
        if not found.bounds.allow(needed):
            raise InsufficientScope(*needed)
    return found


def platform_caller(*scopes: str) -> PlatformCaller:
    """Find the caller of a call of the platform, with one statement.

    Raises:
        InvalidKey: as by `caller`.
        WrongKey: the key is one of an organization.
        InsufficientScope: the key lacks a scope that the call needs.
    """
    key_hash = hash_of_given_key()
    if key_hash is None:
        raise InvalidKey
    with single_statement() as connection:
        if not _is_platform_key():
            get_caller(connection, key_hash)
            raise WrongKey("This call takes a platform key, but this is a key of an organization.")
        found = platform_keys.get_caller(connection, key_hash)
    found.require(*scopes)
    current_record().platform_key_id = found.platform_key_id
    return found
