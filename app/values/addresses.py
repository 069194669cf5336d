"""E-mail addresses: their syntax, and the normalised form by which they are compared."""

import re
import unicodedata
from typing import NamedTuple

import email_validator

from app.errors import InvalidAddress
from app.values.texts import is_utf8

LENGTH_MAX = 254  # RFC 5321, 4.5.3.1.3: a path of 256 octets, less its angle brackets.
_LOCAL_LENGTH_MAX = 64  # RFC 5321, 4.5.3.1.1.
_SIMPLE_LENGTH_MAX = 64

# Reserved domains (`.test`, `.local`) matter for delivery, not for syntax.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

# Accepts plain ASCII addresses, which are nearly all, 70 times faster than the library. The library decides about the
# rest (also `xn--` labels, which have a second spelling), so the pattern may be too strict but never too generous.
# `\Z`, because `$` admits a newline. `++` prevents backtracking. It is used after single characters only, because with
# groups it is broken in Python before 3.11.5.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]++"
_LABEL = r"(?!xn--|..--)[A-Za-z0-9][A-Za-z0-9-]{0,62}+(?<!-)"
_LENGTHS = rf"(?=.{{3,{LENGTH_MAX}}}\Z)(?=[^@]{{1,{_LOCAL_LENGTH_MAX}}}@)"
PLAIN = re.compile(rf"{_LENGTHS}{_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LABEL}(?<=[A-Za-z])\Z")


# What stands for the address of an erased user. It is not an address, so nobody can send to it.
ERASED = re.compile(r"erased-[0-9]+")
IS_ERASED = f"email ~ '^{ERASED.pattern}$'"  # In SQL.


class Address(NamedTuple):
    """One e-mail address: `text` as sent (trimmed); `key` is the normalised form, equal for equal addresses."""

    text: str
    key: str


def parse(raw: str) -> Address:
    """Read an address: trim blanks, check the syntax without DNS, keep dots and plus signs.

    Raises:
        InvalidAddress: the text is not an address; the sentence says why without repeating it.
    """
    text = raw.strip()
    if PLAIN.match(text):
        return Address(text, text.lower())
    if not text:
        raise InvalidAddress("must be an e-mail address, but is blank.")
    if len(text) > LENGTH_MAX:
        raise InvalidAddress(f"must be an e-mail address of at most {LENGTH_MAX} characters, but has {len(text)}.")
    if "@" not in text:
        raise InvalidAddress("must be an e-mail address: it has no @-sign.")
    if not is_utf8(text):
        raise InvalidAddress("must be an e-mail address in UTF-8.")
    try:
        checked = email_validator.validate_email(text, check_deliverability=False, strict=True)
    except email_validator.EmailNotValidError as error:
        raise InvalidAddress(f"must be an e-mail address: {_without_quotes(str(error))}") from None
    # Lower-casing can decompose a letter, so normalise again.
    return Address(text, unicodedata.normalize("NFC", checked.normalized.lower()))


def spellings(key: str) -> list[str]:
    """Return a normalised form, and the same with its domain in ASCII (`xn--`) if that is another."""
    if key.isascii():
        return [key]
    checked = email_validator.validate_email(key, check_deliverability=False, strict=True)
    return list(dict.fromkeys((key, f"{checked.local_part}@{checked.ascii_domain}")))


def is_costly(raw: str) -> bool:
    """Tell whether `parse` may take milliseconds for this text, where a short ASCII text takes 20 to 60 µs."""
    text = raw.strip()
    is_simple = text.isascii() and len(text) <= _SIMPLE_LENGTH_MAX and "xn--" not in text.lower()
    return len(text) <= LENGTH_MAX and "@" in text and not is_simple and not PLAIN.match(text)


def _without_quotes(reason: str) -> str:
    """Return a library's reason as a printable line; it may quote any character."""
    return "".join(character if character.isprintable() else "?" for character in reason)[:200]
