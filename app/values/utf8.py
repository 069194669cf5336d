"""Text from files and command lines that may not be UTF-8; Python reads other bytes as lone surrogates."""

import re

_SURROGATES = re.compile("[\ud800-\udfff]")


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
