"""What every call of `FakePoints` has: a body in JSON, an idempotency key, and an answer in the envelope."""

import re
from typing import Any

import httpx

from points_client.testing.fields import NotInFake, parsed


def body_of(request: httpx.Request) -> dict[str, Any]:
    """Return the body of a call.

    Raises:
        NotInFake: it is not a plain object in JSON.
    """
    if request.headers.get("Content-Type") != "application/json":
        raise NotInFake("a body that is not application/json")
    return parsed(request.content)


def idempotency_key_of(request: httpx.Request) -> str | None:
    """Return the key of a call that is done once.

    Raises:
        NotInFake: it has characters that no key has.
    """
    key: str | None = request.headers.get("Idempotency-Key")
    if key is not None and not re.fullmatch(r"[!-~]{1,255}", key):
        raise NotInFake("an Idempotency-Key of other characters")
    return key


def envelope(
    status: int,
    *,
    success: bool = True,
    data: dict[str, Any] | None = None,
    errors: dict[str, list[str]] | None = None,
    additional: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """Return an answer; `additional` joins the version in a success."""
    about = {"version": "1.0", **(additional or {})} if success else additional
    document = {"success": success, "data": data, "errors": errors, "additional_data": about}
    return httpx.Response(status, json=document, headers=headers)
