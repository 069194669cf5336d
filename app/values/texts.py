"""Texts that somebody has sent or typed: labels, references and names, and how a sentence shows such a text."""

import re

from app.errors import Fault, Refused

LABEL_LENGTH_MAX = 255
NAME_LENGTH_MAX = 255
KEY_NAME_LENGTH_MAX = 100
# 1 to 128 visible characters: no blanks, no control characters, and none that are invisible or change the direction of
# the text. The expression is valid in JSON Schema too.
REFERENCE = re.compile(r"^[^\s\u0000-\u0020\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]{1,128}$")
REFERENCE_LENGTH_MAX = 128
_SHOWN_LENGTH_MAX = 40
# Python reads bytes that are not UTF-8 as lone surrogates.
_SURROGATES = re.compile("[\ud800-\udfff]")


def shown(text: str) -> str:
    """Return the text in quotation marks, cut where it is long, with ? for what cannot be seen; or “empty”."""
    if not text:
        return "empty"
    cut = text if len(text) <= _SHOWN_LENGTH_MAX else f"{text[:_SHOWN_LENGTH_MAX]}…"
    return f"“{''.join(character if character.isprintable() else '?' for character in cut)}”"


def checked_name(what: str, name: str, *, may_be_blank: bool = False, length_max: int = NAME_LENGTH_MAX) -> str:
    """Return a trimmed name; `what` begins the sentence of a refusal.

    Raises:
        Refused: blank, too long, or with characters that PostgreSQL cannot store.
    """
    name = name.strip()
    if not (name or may_be_blank) or len(name) > length_max:
        raise Refused(Fault(what, f"must have 1 to {length_max} characters, but has {len(name)}."))
    if "\0" in name:
        raise Refused(Fault(what, "must not contain a NUL character."))
    if not is_utf8(name):
        raise Refused(Fault(what, "is not in UTF-8."))
    return name


def checked_key_name(name: str) -> str:
    """Return the trimmed name of a key, of an organization or of the platform.

    Raises:
        Refused: blank, too long, or with a character that cannot be seen.
    """
    name = checked_name("The name", name, length_max=KEY_NAME_LENGTH_MAX)
    if (fault := key_name_fault(name)) is not None:
        raise Refused(Fault("The name", fault))
    return name


def key_name_fault(name: str) -> str | None:
    """Say which character of a key's name cannot be seen, to complete “The name …”; None if all can."""
    hidden = next((character for character in name if not character.isprintable()), None)
    return None if hidden is None else f"must have visible characters and blanks only, but has U+{ord(hidden):04X}."


def as_sentence(text: str) -> str:
    """Write a text so that it begins as a sentence does."""
    return text[:1].upper() + text[1:]


def with_name(noun: str, name: str | None) -> str:
    """Return what a person reads of something with an id, such as `key 3`, that may have a name: `key 3 (Shop)`."""
    return noun if name is None else f"{noun} ({name})"


def in_utf8(text: str) -> str:
    """Return the text with a replacement character for each lone surrogate."""
    return _SURROGATES.sub("\ufffd", text)


def is_utf8(text: str) -> bool:
    """Tell whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
