"""HTTP calls to servers on this machine, never through a proxy that the environment names."""

from http.client import HTTPException, HTTPResponse
from typing import cast
from urllib.request import ProxyHandler, Request, build_opener

_opener = build_opener(ProxyHandler({}))


def call(request: str | Request, *, timeout_s: float) -> HTTPResponse:
    """Make a call, for use in a `with`.

    Raises:
        OSError: there is no answer, or its status is 400 or above.
        HTTPException: the answer is not HTTP.
    """
    return cast(HTTPResponse, _opener.open(request, timeout=timeout_s))


def answers(url: str, *, timeout_s: float = 5.0) -> bool:
    """Tell whether a GET of this address is answered with 200."""
    try:
        with call(url, timeout_s=timeout_s) as answer:
            return answer.status == 200
    except (OSError, HTTPException):
        return False
