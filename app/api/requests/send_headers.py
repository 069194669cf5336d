"""The headers of calls: the idempotency key, what is rehearsed, and how long the caller waits."""

import re
from collections.abc import Collection
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


# Those of our own: a call that does not take one refuses it, for nothing that a caller sends is ignored.
_OWN = {name: f"HTTP_{name.upper().replace('-', '_')}" for name in ("Idempotency-Key", "Points-Rehearse", "Prefer")}


def headers_refused(taken: Collection[str]) -> list[str]:
    """Return which headers a call refuses that takes these."""
    return [name for name in _OWN if name not in taken]


def refuse_headers(refused: Collection[str]) -> None:
    """Refuse the request if it has one of these headers.

    Raises:
        InvalidRequest: it has.
    """
    if sent := [name for name in refused if _OWN[name] in request.environ]:
        sentence = "This call takes no {} header: leave it out."
        raise InvalidRequest({name.lower().replace("-", "_"): [sentence.format(name)] for name in sent})


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

    Beside one of these, a preference that is not known is ignored, as the RFC has it.

    Raises:
        InvalidRequest: none of them is there, or one has a value that it cannot have, or several.
    """
    preferences, longest = request.environ.get("HTTP_PREFER", "").strip(), settings().wait_s
    if not preferences:
        return Wish(longest, None)
    known: set[tuple[str, str]] = set()
    for preference in parse_http_list(preferences.lower()):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip() in _PREFERENCES:
            known.add((name.strip(), value.strip().strip('"')))
    values = dict(known)
    if not len(known) == len(values) >= 1 or not all(_PREFERENCES[name].fullmatch(value) for name, value in known):
        rule = "must be respond-async or wait=N, a number of seconds, each once"
        raise InvalidRequest({"prefer": [f"The Prefer header {rule}, but is {shown(preferences)}."]})
    if "respond-async" in values:
        return Wish(0.0, "respond-async")
    wait_s = min(float(values["wait"]), longest)
    return Wish(wait_s, f"wait={wait_s:g}")


_PREFERENCES = {"respond-async": re.compile(""), "wait": re.compile(r"[0-9]{1,9}")}


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
