"""Passwords of members: what one must be, and its hash by argon2."""

import unicodedata
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.errors import Refused

LENGTH_MIN, LENGTH_MAX = 12, 256

# The minimum of OWASP's password storage sheet: 19 MiB, two passes, one lane.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


def checked(password: str) -> str:
    """Return a password unchanged if it may be chosen.

    Raises:
        Refused: too short or too long.
    """
    if not LENGTH_MIN <= len(password) <= LENGTH_MAX:
        raise Refused(f"A password must have {LENGTH_MIN} to {LENGTH_MAX} characters, but has {len(password)}.")
    return password


def hash_password(password: str) -> str:
    """Return the text by which a password is stored. It takes tens of milliseconds and 19 MiB."""
    return _HASHER.hash(_bytes(password))


def is_right(password: str, stored: str | None) -> bool:
    """Tell whether a password is the stored one. If none is stored, the answer is no after the same work."""
    try:
        _HASHER.verify(stored or _nobody(), _bytes(password))
    except (VerificationError, InvalidHashError):
        return False
    return stored is not None


@cache
def _nobody() -> str:
    return _HASHER.hash(b"nobody's")


def _bytes(password: str) -> bytes:
    """Write a password in one form: keyboards differ in how they compose a letter."""
    return unicodedata.normalize("NFC", password[:LENGTH_MAX]).encode(errors="surrogatepass")
