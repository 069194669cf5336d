"""The envelope around every answer, a model for each call: success with its payload, or failure with its sentences."""

from typing import Annotated, Literal

from pydantic import Field

from app.api.openapi.answers import (
    Answer,
    Batch,
    BatchList,
    Health,
    Id,
    Null,
    Organization,
    Points,
    QueuedBatch,
    Readiness,
    SendResult,
    Transaction,
    TransactionList,
    Verdict,
)

Sentences = Annotated[list[str], Field(min_length=1)]


class Additions(Answer):
    """What is said beside the payload."""

    version: str = Field(description="The version of the interface.")


class VerifyAdditions(Additions):
    """The verdict, for programs."""

    code: Literal["insufficient_balance", "organization_disabled", "organization_suspended"] | None
    required: Points = Field(description="Points for all recipients together.")
    available: Points = Field(description="Points the organization has.")
    affordable_recipients: int = Field(ge=0, description="How many recipients, from the first on, the balance pays.")


class SendAdditions(Additions):
    """Which batch it became."""

    batch_id: Id


class Success(Answer):
    success: Literal[True]
    data: Answer
    errors: Null
    additional_data: Additions


class VerifyAnswer(Success):
    """200 of verify."""

    data: Verdict
    additional_data: VerifyAdditions


class SendAnswer(Success):
    """201 of send."""

    data: SendResult
    additional_data: SendAdditions


class QueuedAnswer(Success):
    """202 of send."""

    data: QueuedBatch
    additional_data: SendAdditions


class BatchAnswer(Success):
    """One batch."""

    data: Batch


class BatchListAnswer(Success):
    """A page of batches."""

    data: BatchList


class TransactionListAnswer(Success):
    """A page of transactions."""

    data: TransactionList


class TransactionAnswer(Success):
    """One transaction."""

    data: Transaction


class OrganizationAnswer(Success):
    """The caller's own organization."""

    data: Organization


class HealthAnswer(Success):
    """The process answers."""

    data: Health


class ReadinessAnswer(Success):
    """The service can work."""

    data: Readiness


class Failure(Answer):
    """Every error: the name of a field, and at least one sentence about it."""

    success: Literal[False]
    data: Null
    errors: Annotated[dict[str, Sentences], Field(min_length=1)]
    additional_data: Null


EVERY: tuple[type[Answer], ...] = (
    VerifyAnswer,
    SendAnswer,
    QueuedAnswer,
    BatchAnswer,
    BatchListAnswer,
    TransactionListAnswer,
    TransactionAnswer,
    OrganizationAnswer,
    HealthAnswer,
    ReadinessAnswer,
    Failure,
)
