"""Calls to what runs on this machine. A proxy that the environment names is for the world outside: it sees none."""

from http.client import HTTPException, HTTPResponse
from typing import cast
from urllib.request import ProxyHandler, Request, build_opener

_opener = build_opener(ProxyHandler({}))


def call(request: str | Request, *, timeout_s: float) -> HTTPResponse:
    """Make a call, for use in a `with`.

    Raises:
        OSError: nobody answers, or with a status of 400 and above.
        HTTPException: what answers does not speak HTTP.
    """
    return cast(HTTPResponse, _opener.open(request, timeout=timeout_s))


def answers(url: str, *, timeout_s: float = 5.0) -> bool:
    """Tell whether an address answers a GET with a success."""
    try:
        with call(url, timeout_s=timeout_s) as answer:
            return answer.status == 200
    except (OSError, HTTPException):
        return False
