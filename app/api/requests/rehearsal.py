"""The header `Points-Rehearse`: what a call with a development key is to meet."""

from contextlib import suppress
from socket import SHUT_RDWR

from flask import request

from app.api.auth import is_development_key
from app.batches.rehearsing import WORDS
from app.errors import InvalidRequest
from app.values.texts import shown


def rehearsal() -> str | None:
    """Return the word of the header, or None.

    Raises:
        InvalidRequest: the word is not known, or the key is a live key.
    """
    word = request.environ.get("HTTP_POINTS_REHEARSE")
    if word is None:
        return None
    if word not in WORDS:
        sentence = f"The Points-Rehearse header must be one of {', '.join(WORDS)}, but is {shown(word)}."
    elif not is_development_key():
        sentence = "Only a development key can rehearse, but this is a live key: leave out the Points-Rehearse header."
    else:
        return str(word)
    raise InvalidRequest({"points_rehearse": [sentence]})


def end_connection() -> None:
    """End the caller's connection: the answer then reaches nobody."""
    with suppress(OSError):  # The caller may have gone already.
        request.environ["gunicorn.socket"].shutdown(SHUT_RDWR)
