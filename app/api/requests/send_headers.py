"""The headers of send and reverse: the idempotency key, and how long the caller waits."""

import re
from contextlib import suppress
from socket import SHUT_RDWR
from typing import NamedTuple
from urllib.request import parse_http_list

from flask import Response, request

from app.api.auth import is_development_key
from app.batches.accept import IDEMPOTENCY_KEY
from app.batches.verify import WORDS
from app.errors import InvalidRequest
from app.settings import settings
from app.values.texts import shown


def idempotency_key() -> str | None:
    """Return the `Idempotency-Key` of the request, or None.

    Raises:
        InvalidRequest: it is not 1 to 255 visible ASCII characters.
    """
    key = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is None or IDEMPOTENCY_KEY.fullmatch(key):
        return key
    seen = f"it has {len(key)}" if not 1 <= len(key) <= 255 else "it has other characters"
    sentence = f"The Idempotency-Key must be 1 to 255 visible ASCII characters, but {seen}."
    raise InvalidRequest({"idempotency_key": [sentence]})


class Wish(NamedTuple):
    """How long a caller wishes to wait, and the preference that says so, as it is applied; None: it has none."""

    wait_s: float
    applied: str | None

    def named_in(self, response: Response) -> Response:
        """Tell the caller which preference was applied."""
        if self.applied is not None:
            response.headers["Preference-Applied"] = self.applied
        return response


def wish() -> Wish:
    """Return how long to wait (RFC 7240: `Prefer: respond-async` or `wait=5`), at most as long as the settings say.

    A preference that is not understood is ignored, and of one that comes twice the first counts.
    """
    preferences, longest = request.environ.get("HTTP_PREFER"), settings().wait_s
    if preferences is None:
        return Wish(longest, None)
    values: dict[str, str] = {}
    for preference in parse_http_list(preferences.lower()):
        name, _, value = preference.partition(";")[0].partition("=")
        values.setdefault(name.strip(), value.strip().strip('"'))
    if values.get("respond-async") == "":
        return Wish(0.0, "respond-async")
    if _SECONDS.fullmatch(seconds := values.get("wait", "")):
        wait_s = min(float(seconds), longest)
        return Wish(wait_s, f"wait={wait_s:g}")
    return Wish(longest, None)


_SECONDS = re.compile(r"[0-9]{1,9}")


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
