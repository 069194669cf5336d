"""The expected errors, each with its own sentence and the HTTP status that a caller of the API gets for it."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

Faults = Mapping[str, Sequence[str]]


class Fault(str):
    """A sentence about a field: its subject, and what it says of it. An edge may call the field by another name."""

    says: str

    def __new__(cls, subject: str, says: str) -> "Fault":
        fault = super().__new__(cls, f"{subject} {says}")
        fault.says = says
        return fault

    def about(self, subject: str) -> str:
        """Return the same sentence about what the edge calls the field."""
        return f"{subject} {self.says}"


class PointsError(Exception):
    """Base of every expected error.

    A class without a `status`, of its own or of its base, cannot be defined. `says` is the sentence unless another is
    given; it stands under `field` in the envelope's `errors`. `code` is a stable word for programs: the name of the
    class, unless another is given; `beside` is what programs are told beside it. `organization_id` goes into the log:
    the organization whose request is refused.
    """

    status: ClassVar[int]
    says: ClassVar[str] = ""
    code: ClassVar[str]
    field = "request"
    beside: Mapping[str, int] = MappingProxyType({})
    organization_id: int | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "status"):
            raise TypeError(f"The error {cls.__name__} has no status.")
        if "code" not in cls.__dict__:
            cls.code = re.sub(r"\B(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, sentence: str | None = None) -> None:
        self.sentence = self.says if sentence is None else sentence
        super().__init__(self.sentence)

    @property
    def faults(self) -> Faults:
        """Field names with their sentences, as in the envelope's `errors`."""
        return {self.field: [self.sentence]}


class InvalidRequest(PointsError):
    """The request has faults; nothing was written."""

    status = 400

    def __init__(self, faults: Faults) -> None:
        super().__init__("The request has faults.")
        self._faults = faults

    @property
    def faults(self) -> Faults:
        return self._faults


class InvalidKey(PointsError):
    """No usable API key. The sentence is the same for a missing, malformed, unknown, expired and revoked key."""

    status = 401
    field = "authorization"
    says = "A valid API key is required, sent as `Authorization: Bearer <key>`."


class InsufficientScope(PointsError):
    """The key is good, but it may not make this call."""

    status = 403
    field = "authorization"

    def __init__(self, *scopes: str) -> None:
        """Name the scopes, any of which is enough for the call."""
        super().__init__(f"The key lacks the scope {' or '.join(scopes)}, which this call needs.")


class MayNotIssue(PointsError):
    """The organization may not issue points now."""

    status = 403
    field = "organization"


class OrganizationDisabled(MayNotIssue):
    says = "The organization is disabled and can neither issue points nor take them back."


class OrganizationSuspended(MayNotIssue):
    says = "The organization is suspended and cannot issue points until it is resumed."


class BalanceTooLarge(PointsError):
    """The balance would exceed 64 bits if the reversal gave the points back."""

    status = 409
    field = "organization"
    says = "The organization's balance cannot hold the points that this would give back."


class RateLimited(PointsError):
    """A key makes more calls than it may."""

    status = 429
    field = "rate_limit"
    says = "The key makes more calls than it may. Wait for the seconds that Retry-After names."


class OutOfReach(PointsError):
    """PostgreSQL is away or overloaded."""

    status = 503
    field = "service"
    says = "The service cannot reach its database. Try again soon."


class IdempotencyKeyReused(PointsError):
    status = 422
    field = "idempotency_key"
    says = "This Idempotency-Key was used with another body; another call needs a new key."


class LimitReached(PointsError):
    """The organization has reached a limit in this mode."""

    status = 403

    def __init__(self, limit: int) -> None:
        super().__init__(self.says.format(limit=limit))


class SandboxUserLimit(LimitReached):
    field = "email"
    says = "There are already {limit} users of the sandbox, which is the limit. Use one of them."


class BatchConflict(PointsError):
    """A batch is no longer in the state that the call needs; the sentence says what can be done instead."""

    status = 409
    code = "batch_final"
    field = "batch"


class BatchNotIssued(BatchConflict):
    says = "The batch was cancelled, refused or rejected: nobody was debited, so there is nothing to take back."


class CannotExtend(PointsError):
    """The transaction is not held, has no end, or its end has come; the sentence says which."""

    status = 409
    field = "transaction"


class UserConflict(PointsError):
    """The address or the external id is that of another user, or of a user with other names."""

    status = 409
    says = "The email is that of a user with other names."

    def __init__(self, sentence: str | None = None, *, field: str = "email") -> None:
        super().__init__(sentence)
        self.field = field


class OrganizationConflict(PointsError):
    """The external id is that of another organization."""

    status = 409
    field = "external_id"
    says = "The external_id is that of another organization."


class NotFound(PointsError):
    status = 404

    def __init__(self, noun: str, name: object) -> None:
        super().__init__(f"There is no {noun} {name}.")
        self.noun, self.name = noun, name

    @property
    def faults(self) -> Faults:
        return {self.noun: [self.sentence]}


class Refused(PointsError):
    """The request cannot be carried out; the sentence says why, and what to do about it."""

    status = 409
    code = "invalid_request"


class RefillConflict(Refused):
    """The reference of a refill is that of a different refill."""

    field = "reference"

    def __init__(self, reference: str, amount: int, mode: str) -> None:
        super().__init__(
            f"The reference {reference} is that of a refill of {amount} {mode} points, booked before."
            " Nothing is booked now. Another refill needs another reference."
        )


class RefillTooLarge(Refused):
    """The balance would exceed 64 bits."""

    code = "balance_too_large"
    field = "amount"


class CorrectionTooLarge(Refused):
    """The balance would fall below 0."""

    field = "amount"


class InvalidAddress(PointsError):
    """A text is not an e-mail address. The sentence completes “It …” and does not repeat the text."""

    status = 400


class SettingsError(Exception):
    """Settings are missing or wrong; the message names each in a sentence."""
