"""E-mail addresses: their syntax, and the form under which two of them are the same."""

import re
import unicodedata
from typing import NamedTuple

import email_validator

from app.errors import InvalidAddress
from app.utf8 import is_utf8

LENGTH_MAX = 254  # RFC 5321, 4.5.3.1.3: a path of 256 octets, less its angle brackets.
_LOCAL_LENGTH_MAX = 64  # RFC 5321, 4.5.3.1.1.
_SIMPLE_LENGTH_MAX = 64

# Whether a domain is reserved (`.test`, `.local`) is a question of delivery, not of syntax.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

# Settles the plain ASCII addresses that nearly every request consists of, 70 times faster than the
# library. Whatever it does not accept (also `xn--` labels, which have a second spelling) goes on to
# the library, so it may be too strict but never too generous. `\Z`, because `$` admits a newline.
# Nothing is given back (`++`): what follows an atom or a label can be no part of it. Only of single characters:
# Python before 3.11.5 goes wrong with groups.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]++"
_LABEL = r"(?!xn--|..--)[A-Za-z0-9][A-Za-z0-9-]{0,62}+(?<!-)"
_LENGTHS = rf"(?=.{{3,{LENGTH_MAX}}}\Z)(?=[^@]{{1,{_LOCAL_LENGTH_MAX}}}@)"
_PLAIN = re.compile(rf"{_LENGTHS}{_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LABEL}(?<=[A-Za-z])\Z")


class Address(NamedTuple):
    """One e-mail address: `text` as sent (trimmed), `key` the form that equal addresses share."""

    text: str
    key: str


def parse(raw: str) -> Address:
    """Read one address: surrounding blanks trimmed, syntax checked without DNS, no folding of dots or plus.

    Raises:
        InvalidAddress: it is no address; the sentence says why and does not repeat it.
    """
    text = raw.strip()
    if _PLAIN.match(text):
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
    # The lower case of a composed letter may be a decomposed one.
    return Address(text, unicodedata.normalize("NFC", checked.normalized.lower()))


def is_costly(raw: str) -> bool:
    """Tell whether `parse` may take milliseconds for this text, and not the 20 to 60 µs of a short one in ASCII."""
    text = raw.strip()
    is_simple = text.isascii() and len(text) <= _SIMPLE_LENGTH_MAX and "xn--" not in text.lower()
    return len(text) <= LENGTH_MAX and "@" in text and not is_simple and not _PLAIN.match(text)


def _without_quotes(reason: str) -> str:
    """Keep a library's reason to one printable line; the characters it complains of may be anything."""
    return "".join(character if character.isprintable() else "?" for character in reason)[:200]
