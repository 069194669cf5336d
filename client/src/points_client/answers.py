"""Answers of the service, in the envelope, or of another server; and the error for each refusal."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from points_client.errors import Invalid, NotAuthorized, PointsError, Refused

_CLASS_OF: Mapping[int, type[PointsError]] = {
    **dict.fromkeys((400, 405, 413, 415, 422), Invalid),
    401: NotAuthorized,
    **dict.fromkeys((403, 404, 409), Refused),
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A success: the status, `data` and `additional_data` of the envelope.

    `replayed`: an earlier call has done this already. False if an earlier try of this call may have done it.
    """

    status: int
    data: Mapping[str, Any]
    additional: Mapping[str, Any]
    replayed: bool

    def part(self, name: str) -> Any:
        """Return a field of `data`.

        Raises:
            PointsError: there is none.
        """
        if name not in self.data:
            raise PointsError(f"The answer is not that of a Points Issuing Service: it has no {name}.")
        return self.data[name]


class CutShort(Exception):
    """An answer broke off: it has the status of a success, and JSON without an end."""


def envelope_of(response: httpx.Response) -> Mapping[str, Any]:
    """Return the envelope of a success.

    Raises:
        CutShort: the answer broke off.
        PointsError: it is a refusal, or not the answer of a Points Issuing Service.
    """
    if response.status_code == 204:
        return {"data": {}, "additional_data": None}
    try:
        document = json.loads(response.content)
    except ValueError:
        if response.is_success and response.headers.get("Content-Type", "").startswith("application/json"):
            raise CutShort from None
        raise stranger(response) from None
    if not isinstance(document, dict):
        raise stranger(response)
    if response.is_success and document.get("success") is True and isinstance(document.get("data"), dict):
        return document
    errors = document.get("errors")
    if response.is_success or not isinstance(errors, dict) or not errors:
        raise stranger(response)
    additional = document.get("additional_data")
    code = additional.get("code") if isinstance(additional, dict) else None
    raise _refusal(response, errors, code)


def stranger(response: httpx.Response) -> PointsError:
    """Return the error for an answer that is not in the envelope."""
    url, status = response.request.url.copy_with(query=None), response.status_code
    if response.has_redirect_location:
        location = response.headers["Location"]
        return PointsError(f"{url} answers {status} and points to {location}.", status=status, location=location)
    kind = _CLASS_OF.get(status, PointsError)
    message = f"{url} answers {status}, but not as a Points Issuing Service does. Is the URL right?"
    return kind(message, status=status, request_id=response.headers.get("X-Request-Id"))


def _refusal(response: httpx.Response, errors: Mapping[str, Sequence[str]], code: str | None) -> PointsError:
    sentences = " ".join(f"{field}: {' '.join(found)}" for field, found in errors.items())
    return _CLASS_OF.get(response.status_code, PointsError)(
        f"{response.status_code}: {sentences}",
        status=response.status_code,
        errors=errors,
        code=code,
        request_id=response.headers.get("X-Request-Id"),
    )
