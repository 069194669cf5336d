"""Text from outside that may be none: what Python makes of bytes that are not UTF-8, in a file or on a command line."""

import re

_SURROGATES = re.compile("[\ud800-\udfff]")


def in_utf8(text: str) -> str:
    """Return the text with a replacement character for each byte that was none."""
    return _SURROGATES.sub("\ufffd", text)


def is_utf8(text: str) -> bool:
    """Tell whether a text can be written as UTF-8: Python reads other bytes as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
