"""What a call may raise: one base, and a class for each thing that a caller can do about it."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Conflict", "Gone", "Invalid", "InvalidSignature", "NoAnswer", "NotAccepted", "NotAllowed"]
__all__ += ["NotAuthorized", "NotFound", "PointsError", "RateLimited", "Refused"]


class PointsError(Exception):
    """Base of all errors of this package. They can be pickled and copied, with all that they carry.

    Attributes:
        status: the HTTP status of the answer; None when there was none.
        errors: field name to sentences, as the service answered them; empty if the service did not answer.
        code: a stable word for programs, such as `organization_suspended`; None on a 400.
        additional: what else the answer says for programs, such as the `oldest` event that is kept.
        request_id: the `X-Request-Id` of the last answer, for the people who run the service; None if there was none.
        location: where a redirect points to. Redirects are not followed: the key would travel with them.
        key: the idempotency key of the call; None for a call without one.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        errors: Mapping[str, Sequence[str]] | None = None,
        code: str | None = None,
        additional: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        location: str | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.errors: Mapping[str, Sequence[str]] = errors or {}
        self.code = code
        self.additional: Mapping[str, Any] = additional or {}
        self.request_id = request_id
        self.location = location
        self.key = key


class Invalid(PointsError):
    """The call has faults (400, 405, 413, 415, 422), and nothing was written: correct it.

    422 means that the idempotency key was used with another body: find out which of the two is right.
    """


class InvalidSignature(Invalid):
    """A webhook was not signed with this secret, or not lately: do not trust it."""


class NotAuthorized(PointsError):
    """The key is missing, malformed, unknown, expired or revoked (401)."""


class Refused(PointsError):
    """The call was understood but not done: the sentences say why, and the classes below what to do."""


class NotAllowed(Refused):
    """The organization or the key may not do this (403): have that changed, or use another key.

    Among its codes are the bounds of the key: `insufficient_scope`, and `key_limit` for a batch of too many points.
    """


class NotFound(Refused):
    """There is no such thing for this key, in its mode (404): look for it in a list."""


class Conflict(Refused):
    """Its state does not allow it, or another one has the value already (409): look at what is there, and decide."""


class Gone(Refused):
    """It is kept no longer (410). Of events, `additional["oldest"]` is the first that is kept: begin anew with that."""


class NoAnswer(PointsError):
    """No clear answer came in time, so it is unknown whether the call was done, unless it is a `NotAccepted`.

    `key` is the idempotency key that was used, or None for a call without one. **Make the same call again with this
    key**: it is done once. A call that only reads has no key, and can be made again at any time. `status`, `errors`,
    `code` and `request_id` are those of the last answer, if there was one.
    """


class NotAccepted(NoAnswer):
    """The call was surely not accepted: no try reached the service, or each was one too many (`RateLimited`).

    Nothing was done and nothing will be: the call may be made again, now or later, with this key or another, or given
    up.
    """


class RateLimited(NotAccepted, Refused):
    """The key makes too many calls (429), and the time to try again is over: call again later, and less often."""
