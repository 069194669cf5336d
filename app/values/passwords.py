"""Passwords of members: what a password must be, and its hash by argon2."""

import unicodedata
from collections.abc import Sequence
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.errors import Refused

LENGTH_MIN, LENGTH_MAX = 12, 256
# Of zxcvbn's scores from 0 to 4: at least 10^8 guesses by somebody who knows common passwords, words and patterns.
_SCORE_MIN = 3
# What zxcvbn looks at; it takes longer with each character.
_LOOKED_AT = 72

# The minimum of OWASP's password storage sheet: 19 MiB, two passes, one lane.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


def checked(password: str, *, about: Sequence[str] = ()) -> str:
    """Return a password unchanged if it may be chosen.

    Args:
        about: what others know of the person, such as the e-mail address and the names.

    Raises:
        Refused: too short, too long, or easy to guess.
    """
    if not LENGTH_MIN <= len(password) <= LENGTH_MAX:
        raise Refused(f"A password must have {LENGTH_MIN} to {LENGTH_MAX} characters, but has {len(password)}.")
    if _is_easy_to_guess(password, about):
        raise Refused(
            "This password is easy to guess: it is a common one, a pattern, or made of your name or e-mail address. "
            "Several unusual words in a row make a good one."
        )
    return password


def _is_easy_to_guess(password: str, about: Sequence[str]) -> bool:
    from zxcvbn import zxcvbn  # noqa: PLC0415  # Its lists take 14 MB, in a process where somebody chooses a password.

    known = [part for text in about for part in (text, *text.replace("@", " ").replace(".", " ").split()) if part]
    return int(zxcvbn(password[:_LOOKED_AT], user_inputs=known)["score"]) < _SCORE_MIN


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
