"""The expected errors, each with its own sentence and the HTTP status that a caller of the API gets for it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

Faults = Mapping[str, Sequence[str]]


class PointsError(Exception):
    """Base of every expected error.

    A class without a `status`, of its own or of its base, cannot be defined. `says` is the sentence unless another is
    given; it stands under `field` in the envelope's `errors`. `code` is a stable word for programs. `organization_id`
    goes into the log: the organization whose request is refused.
    """

    status: ClassVar[int]
    says: ClassVar[str] = ""
    code = "invalid_request"
    field = "request"
    organization_id: int | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "status"):
            raise TypeError(f"The error {cls.__name__} has no status.")

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
    code = "invalid_key"
    field = "authorization"
    says = "A valid API key is required, sent as `Authorization: Bearer <key>`."


class WrongKey(PointsError):
    """A good key of the wrong kind: a platform key for a call of organizations, or an organization's key elsewhere."""

    status = 403
    code = "wrong_key"
    field = "authorization"


class InsufficientScope(PointsError):
    """The key is good, but it may not make this call."""

    status = 403
    code = "insufficient_scope"
    field = "authorization"

    def __init__(self, *scopes: str) -> None:
        """Name the scopes of which the call needs one."""
        super().__init__(f"The key lacks the scope {' or '.join(scopes)}, which this call needs.")


class DevelopmentKeyRequired(PointsError):
    """A live key was used for a call that only the sandbox has."""

    status = 403
    code = "development_key_required"
    field = "authorization"
    says = "Only a development key may change the sandbox, but this is a live key."


class MayNotIssue(PointsError):
    """The organization may not issue points now."""

    status = 403
    field = "organization"


class OrganizationDisabled(MayNotIssue):
    code = "organization_disabled"
    says = "The organization is disabled and can neither issue points nor take them back."


class OrganizationSuspended(MayNotIssue):
    code = "organization_suspended"
    says = "The organization is suspended and cannot issue points until it is resumed."


class KeyLimit(PointsError):
    """A batch is for more points than its key may send, in one batch or on this day."""

    status = 403
    code = "key_limit"
    field = "amount"


class InsufficientBalance(PointsError):
    status = 409
    code = "insufficient_balance"

    def __init__(self, *, required: int, available: int) -> None:
        super().__init__(f"The issue needs {required} points, but the balance is {available}.")


class BalanceTooLarge(PointsError):
    """The balance would exceed 64 bits if the reversal gave the points back."""

    status = 409
    code = "balance_too_large"
    field = "organization"
    says = "The organization's balance cannot hold the points that this would give back."


class RateLimited(PointsError):
    """A key makes more calls than it may."""

    status = 429
    code = "rate_limited"
    field = "rate_limit"
    says = "The key makes more calls than it may. Wait for the seconds that Retry-After names."


class OutOfReach(PointsError):
    """PostgreSQL is away or overloaded."""

    status = 503
    code = "out_of_reach"
    field = "service"
    says = "The service cannot reach its database. Try again soon."


class NotKnown(PointsError):
    """Somebody held what the call needs for too long, so nothing was decided."""

    status = 503
    code = "not_known"
    field = "batch"
    says = (
        "It is not known yet what becomes of the batch: its organization is busy, and nothing was changed. Ask again."
    )


class StillComparing(PointsError):
    """Another call compares its recipients with what the organization has sent lately."""

    status = 503
    code = "comparing"
    field = "service"
    says = "Another call of your organization is being compared with what it has sent. Ask again in a second."


class BatchLost(PointsError):
    """PostgreSQL has lost an accepted batch: a standby took over before it had received it."""

    status = 503
    code = "batch_lost"
    field = "service"
    says = "The database has lost this batch after accepting it; nobody was debited. Send it again."


class ReversalLost(PointsError):
    """PostgreSQL has lost an accepted reversal: a standby took over before it had received it."""

    status = 503
    code = "reversal_lost"
    field = "service"
    says = "The database has lost this reversal after accepting it; nothing was taken. Send it again."


class IdempotencyKeyReused(PointsError):
    status = 422
    code = "idempotency_key_reused"
    field = "idempotency_key"
    says = "This Idempotency-Key was used with another body; another call needs a new key."


class LimitReached(PointsError):
    """The organization has reached a limit in this mode."""

    status = 403

    def __init__(self, limit: int) -> None:
        super().__init__(self.says.format(limit=limit))


class ScheduledLimit(LimitReached):
    code = "scheduled_limit"
    field = "send_at"
    says = "There are already {limit} scheduled batches, which is the limit. Cancel one, or wait."


class SandboxUserLimit(LimitReached):
    code = "sandbox_user_limit"
    field = "email"
    says = "There are already {limit} users of the sandbox, which is the limit. Use one of them."


class WebhookLimit(LimitReached):
    code = "webhook_limit"
    field = "url"
    says = "There are already {limit} webhooks, which is the limit. Delete one first."


class WebhookConflict(PointsError):
    """A webhook is not in the state that the call needs; the sentence says what can be done instead."""

    status = 409
    field = "webhook"


class WebhookDisabled(WebhookConflict):
    code = "webhook_disabled"
    says = "The webhook is disabled, so nothing is sent to it. Enable it first."


class WebhookNotStuck(WebhookConflict):
    code = "webhook_not_stuck"
    says = "The webhook is not stuck: no attempt to deliver its next event has failed."


class SecretsKeyMissing(PointsError):
    """There is no key to encrypt secrets with."""

    status = 503
    code = "secrets_key_missing"
    field = "service"
    says = "This service has no key to encrypt webhook secrets: its operator must set POINTS_SECRETS_KEY."


class BatchConflict(PointsError):
    """A batch is no longer in the state that the call needs; the sentence says what can be done instead."""

    status = 409
    code = "batch_final"
    field = "batch"


class BatchCancelled(BatchConflict):
    code = "batch_cancelled"
    says = "The batch was cancelled, and nobody was debited. To issue it after all, send it with a new Idempotency-Key."


class BatchRejected(BatchConflict):
    code = "batch_rejected"
    says = "The batch was rejected, and nobody was debited. To issue it after all, send it with a new Idempotency-Key."


class BatchNotIssued(BatchConflict):
    code = "batch_not_issued"
    says = "The batch was cancelled, refused or rejected: nobody was debited, so there is nothing to take back."


class BatchNotScheduled(BatchConflict):
    code = "batch_not_scheduled"


class BatchScheduled(BatchConflict):
    code = "batch_scheduled"
    says = "The batch is scheduled and nobody was debited: cancel it (POST /v1/batches/{id}/cancel)."


class BatchAwaitsApproval(BatchConflict):
    code = "batch_awaiting_approval"
    says = "The batch awaits an approval and nobody was debited: cancel it (POST /v1/batches/{id}/cancel)."


class BatchNotAwaiting(BatchConflict):
    """A batch is approved or rejected once, and only while it awaits that."""

    code = "batch_not_awaiting"


class OwnBatch(PointsError):
    """A batch is approved or rejected by another than its sender."""

    status = 403
    code = "own_batch"
    field = "batch"
    says = "Whoever has sent a batch cannot approve or reject it: another key or an approver must. It can be cancelled."


class CannotExtend(PointsError):
    """A transaction is not held, or has no end that could be moved; the sentence says why."""

    status = 409
    code = "cannot_extend"
    field = "transaction"


class UserConflict(PointsError):
    """The address or the external id is that of another user, or of one with other names."""

    status = 409
    code = "user_conflict"
    says = "The email is that of a user with other names."

    def __init__(self, sentence: str | None = None, *, field: str = "email") -> None:
        super().__init__(sentence)
        self.field = field


class UserErased(PointsError):
    status = 409
    code = "user_erased"
    field = "user"
    says = "The user was erased, and cannot be changed any more."


class ErasureUnfinished(PointsError):
    """The user is erased, but a copy of the address may be left."""

    status = 503
    code = "erasure_unfinished"
    field = "user"
    says = "The user is erased, but something that began before still runs and may write the address. Call again."


class NotFound(PointsError):
    status = 404
    code = "not_found"

    def __init__(self, noun: str, name: object) -> None:
        super().__init__(f"There is no {noun} {name}.")
        self.noun = noun

    @property
    def faults(self) -> Faults:
        return {self.noun: [self.sentence]}


class Refused(PointsError):
    """The request cannot be carried out; the sentence says why, and what to do about it."""

    status = 409


class RefillConflict(Refused):
    """The reference of a refill is that of a different one."""

    code = "refill_conflict"
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


class MemberConflict(Refused):
    """A member has the address."""

    code = "member_conflict"
    field = "email"
    says = "A member has this e-mail address already."


class InvalidAddress(PointsError):
    """A text is not an e-mail address. The sentence completes “It …” and does not repeat the text."""

    status = 400


class SettingsError(Exception):
    """Settings are missing or wrong; the message names each in a sentence."""
