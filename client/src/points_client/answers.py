"""Answers of the service, in the envelope, and the error for each refusal; or answers of another server."""

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


class CutShort(Exception):
    """An answer broke off: it has the status of a success, and JSON without an end."""


class Unlike(Exception):
    """An answer is not what was asked for; the text completes “The answer is not to this call: …”."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A success: the status, `data` and `additional_data` of the envelope.

    `replayed`: an earlier call has done this already. False if an earlier try of this call may have done it.
    """

    status: int
    data: Mapping[str, Any]
    additional: Mapping[str, Any]
    replayed: bool = False


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An answer that is no success. `is_ours`: it is in the envelope, so the service itself has given it."""

    response: httpx.Response
    errors: Mapping[str, Sequence[str]]
    code: str | None
    is_ours: bool

    @property
    def fields(self) -> dict[str, Any]:
        """What the error of this answer carries."""
        return {
            "status": self.response.status_code,
            "errors": self.errors,
            "code": self.code,
            "request_id": self.response.headers.get("X-Request-Id"),
            "location": self.response.headers.get("Location") if self.response.has_redirect_location else None,
        }

    @property
    def kind(self) -> type[PointsError]:
        return _CLASS_OF.get(self.response.status_code, PointsError) if self.is_ours else PointsError

    @property
    def sentence(self) -> str:
        status = self.response.status_code
        if self.is_ours:
            return f"{status}: " + " ".join(f"{field}: {' '.join(found)}" for field, found in self.errors.items())
        url = self.response.request.url.copy_with(query=None)
        if self.response.has_redirect_location:
            return f"{url} answers {status} and points to {self.response.headers['Location']}."
        return f"{url} answers {status}, but not as a Points Issuing Service does. Is the URL right?"


def envelope_of(response: httpx.Response) -> Answer | Refusal:
    """Return what an answer says.

    Raises:
        CutShort: it broke off.
        RecursionError: its JSON is nested without end.
    """
    if response.status_code == 204:
        return Answer(status=204, data={}, additional={})
    foreign = Refusal(response=response, errors={}, code=None, is_ours=False)
    try:
        document = json.loads(response.content)
    except ValueError:
        if response.is_success and response.headers.get("Content-Type", "").startswith("application/json"):
            raise CutShort from None
        return foreign
    if not isinstance(document, dict):
        return foreign
    data: Any = document.get("data")
    errors: Any = document.get("errors")
    additional = document.get("additional_data")
    additional = additional if isinstance(additional, dict) else {}
    if response.is_success:
        is_ours = document.get("success") is True and isinstance(data, dict)
        return Answer(status=response.status_code, data=data, additional=additional) if is_ours else foreign
    if not _are_errors(errors):
        return foreign
    code = additional.get("code")
    return Refusal(response=response, errors=errors, code=code if isinstance(code, str) else None, is_ours=True)


def _are_errors(errors: object) -> bool:
    """Tell whether these are field names with sentences, as only the service writes them."""
    return (
        isinstance(errors, dict)
        and bool(errors)
        and all(isinstance(found, list) and all(isinstance(one, str) for one in found) for found in errors.values())
    )
