"""Why a batch is not accepted, issued, answered, moved or cancelled."""

from app.errors import BatchConflict, LimitReached, PointsError


class InsufficientBalance(PointsError):
    status = 409

    def __init__(self, *, required: int, available: int) -> None:
        super().__init__(f"The issue needs {required} points, but the balance is {available}.")


class KeyLimit(PointsError):
    """A batch is for more points than its key may send, in one batch or on this day."""

    status = 403
    field = "amount"


class ScheduledLimit(LimitReached):
    field = "send_at"
    says = "There are already {limit} scheduled batches, which is the limit. Cancel one, or wait."


class OwnBatch(PointsError):
    """The key, or the member who made it, has sent this batch: somebody else must answer it."""

    status = 403
    field = "batch"
    says = (
        "Whoever has sent a batch cannot approve or reject it, nor can a key that they made: somebody else must. It can"
        " be cancelled."
    )


class BatchCancelled(BatchConflict):
    says = "The batch was cancelled, and nobody was debited. To issue it after all, send it with a new Idempotency-Key."


class BatchRejected(BatchConflict):
    says = "The batch was rejected, and nobody was debited. To issue it after all, send it with a new Idempotency-Key."


class BatchNotScheduled(BatchConflict):
    """A batch is moved only while it is scheduled."""


class BatchNotAwaiting(BatchConflict):
    """A batch is approved or rejected once, and only while it awaits that."""


class BatchLost(PointsError):
    """PostgreSQL has lost an accepted batch: a standby took over before it had received it."""

    status = 503
    field = "service"
    says = "The database has lost this batch after accepting it; nobody was debited. Send it again."


class NotKnown(PointsError):
    """Somebody held what the call needs for too long, so nothing was decided."""

    status = 503
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
