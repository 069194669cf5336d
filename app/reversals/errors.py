"""Why nothing of a batch can be taken back yet, and that a reversal was lost."""

from app.errors import BatchConflict, PointsError


class BatchScheduled(BatchConflict):
    says = "The batch is scheduled and nobody was debited: cancel it (POST /v1/batches/{id}/cancel)."


class BatchAwaitsApproval(BatchConflict):
    code = "batch_awaiting_approval"
    says = "The batch awaits an approval and nobody was debited: cancel it (POST /v1/batches/{id}/cancel)."


class ReversalLost(PointsError):
    """PostgreSQL has lost an accepted reversal: a standby took over before it had received it."""

    status = 503
    field = "service"
    says = "The database has lost this reversal after accepting it; nothing was taken. Send it again."
