"""Passwords of members: what a password must be, and its hash by argon2."""

import unicodedata
from base64 import b64decode
from collections.abc import Collection, Sequence
from functools import cache

from argon2 import PasswordHasher, extract_parameters

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


def hash_password(password: str, like: str | None = None) -> str:
    """Return the text by which a password is stored. It takes tens of milliseconds and 19 MiB.

    Args:
        like: another stored password of the same person: it gets its salt, so that equal passwords are equal texts.
    """
    if like is None:
        return _HASHER.hash(_bytes(password))
    salt = like.split("$")[-2]
    hasher = PasswordHasher.from_parameters(extract_parameters(like))
    return hasher.hash(_bytes(password), salt=b64decode(salt + "=" * (-len(salt) % 4)))


def right_ones(password: str, stored: Collection[str]) -> set[str]:
    """Return those of a person's stored passwords that are this one, with the same work for none, one or several."""
    by_salt = {text.rpartition("$")[0]: text for text in stored or [_nobody()]}
    return {hash_password(password, like) for like in by_salt.values()} & set(stored)


@cache
def _nobody() -> str:
    return _HASHER.hash(b"nobody's")


def _bytes(password: str) -> bytes:
    """Write a password in one form: keyboards differ in how they compose a letter."""
    return unicodedata.normalize("NFC", password[:LENGTH_MAX]).encode(errors="surrogatepass")
