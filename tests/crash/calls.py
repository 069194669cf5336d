"""One call over HTTP, on a connection of its own, and what a caller knows after it.

It does not use our client: a lost answer is what is tested, and the two must not share a fault.
"""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.local.ports import HOST

# Longer than the service lets a call wait, by enough for a machine that is busy.
CALL_TIMEOUT_S = 20.0


class Unsent(Exception):
    """The connection was refused: the service has heard nothing of the call."""


class Cut(Exception):
    """The connection broke, or nothing came in time: the caller cannot know what became of its call."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer; `body` is the envelope."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]
    raw: bytes


def call(
    port: int, method: str, path: str, *, key: str, body: object = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """Make one call.

    Raises:
        Unsent: it never left.
        Cut: it may have been heard, and was not answered.
    """
    connection = http.client.HTTPConnection(HOST, port, timeout=CALL_TIMEOUT_S)
    try:
        try:
            connection.connect()
        except OSError as error:
            raise Unsent(type(error).__name__) from None
        try:
            connection.request(
                method,
                path,
                body=None if body is None else json.dumps(body),
                headers={
                    "Authorization": f"Bearer {key}",
                    "Content-Type": "application/json",
                    "Connection": "close",
                    **(headers or {}),
                },
            )
            response = connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Cut(type(error).__name__) from None
        return Answer(status=response.status, headers=dict(response.getheaders()), body=json.loads(raw), raw=raw)
    finally:
        connection.close()
