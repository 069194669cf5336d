"""API keys and random tokens, without a database: made, hashed and checked."""

import hashlib
import re
import secrets
import zlib
from dataclasses import dataclass

_LIVE_PREFIX = "pts_live_"
DEVELOPMENT_PREFIX = "pts_dev_"
PLATFORM_PREFIX = "pts_platform_"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_LENGTH = 43  # 62**43 is just above 2**256.
_CHECKSUM_LENGTH = 6  # 62**6 is just above 2**32.
_SHOWN_LENGTH = 4
_PREFIX = f"(?:{_LIVE_PREFIX}|{DEVELOPMENT_PREFIX}|{PLATFORM_PREFIX})"
_START = re.compile(rf"{_PREFIX}[{_ALPHABET}]{{{_SHOWN_LENGTH}}}")
_FORM = re.compile(rf"{_PREFIX}[{_ALPHABET}]{{{_SECRET_LENGTH + _CHECKSUM_LENGTH}}}\Z")


@dataclass(frozen=True, kw_only=True)
class NewKey:
    """A key just made.

    `text` is the whole key, shown once and never stored; `hash` (32 bytes, SHA-256) is stored; `start` is the prefix
    and the first characters, by which people tell keys apart.
    """

    text: str
    hash: bytes
    start: str


def new_key(*, sandbox: bool) -> NewKey:
    """Make a key of an organization, of 256 random bits: a development key for the sandbox, else a live key."""
    return _new(DEVELOPMENT_PREFIX if sandbox else _LIVE_PREFIX)


def new_platform_key() -> NewKey:
    """Make a key of the platform, of the same form."""
    return _new(PLATFORM_PREFIX)


def _new(prefix: str) -> NewKey:
    body = prefix + _base62(secrets.randbits(256), _SECRET_LENGTH)
    text = body + _checksum(body)
    return NewKey(text=text, hash=hash_key(text), start=body[: len(prefix) + _SHOWN_LENGTH])


def start_in(text: str) -> str | None:
    """Return the public beginning of the key that a text holds, such as `pts_live_4dH2`; None if it holds none."""
    match = _START.search(text)
    return None if match is None else match[0]


def hash_key(text: str) -> bytes:
    """Return the 32 bytes by which a key is stored and looked up.

    A plain SHA-256 is enough: nobody can guess 256 random bits. A slow hash would delay every request.
    """
    return hashlib.sha256(text.encode("ascii")).digest()


def is_well_formed(text: str) -> bool:
    """Tell whether `text` could be a key: its prefix, its length, its alphabet and its checksum."""
    if not _FORM.match(text):
        return False
    return secrets.compare_digest(text[-_CHECKSUM_LENGTH:], _checksum(text[:-_CHECKSUM_LENGTH]))


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode("ascii")), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def new_token() -> tuple[str, bytes]:
    """Return a token of 43 characters that may stand in a URL, and its hash."""
    token = secrets.token_urlsafe(32)
    return token, hash_token(token)


def hash_token(token: str) -> bytes:
    """Return the 32 bytes by which a token is stored and looked up."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
