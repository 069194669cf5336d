"""What the service answers, as models: `/openapi.json` is made from them, and the tests hold every answer to them.

The answers themselves are rendered by `app/api/envelope.py`, which for ten thousand transactions is ten times faster.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

Id = Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})]
Points = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
Time = Annotated[
    str,
    Field(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$",
        json_schema_extra={"format": "date-time"},
        description="ISO 8601 in UTC, with six decimals.",
    ),
]


# What is always null, described as an object that may be: there are generators of clients that know no other null.
Null = Annotated[None, WithJsonSchema({"type": ["object", "null"]})]


def _without_titles(schema: dict[str, Any]) -> None:
    for described in (schema, *schema.get("properties", {}).values()):
        described.pop("title", None)


class Answer(BaseModel):
    """A part of an answer. Fields may be added to it in later versions; none is taken away."""

    # The classes' docstrings are for callers: they become the descriptions of the schemas.
    model_config = ConfigDict(json_schema_extra=_without_titles)


class Organization(Answer):
    """Who issues, as the mode of the key sees it."""

    id: Id
    name: str
    is_disabled: bool
    is_suspended: bool
    balance: Points = Field(
        description="Points it can still issue; inside a transaction, the balance right after that transaction."
    )
    last_refill: Points = Field(description="The balance right after the last refill.")
    created_at: Time


class User(Answer):
    """An account."""

    id: Id
    first_name: str
    last_name: str


class Transaction(Answer):
    """One recipient of a batch."""

    id: Id
    organization: Organization
    recipient: User | None = Field(description="The account with this address; null if there is none.")
    email: str = Field(description="The address as it was sent, trimmed.")
    amount: Points = Field(description="Points for this recipient.")
    debited: bool = Field(description="The points were taken from the organization. False: the balance was too low.")
    credited: bool = Field(description="The points were given to the account.")
    allocated: bool = Field(description="The same as `credited`. Debited but not allocated: the points are held.")
    sender: User | None = Field(description="Null: sent through this interface.")
    label: str | None
    sandbox: bool
    created_at: Time


class Verdict(Answer):
    """Whether the whole issue is possible at this moment."""

    validated: bool
    error: str | None = Field(description="Why not, as a sentence; null when it is possible.")


class SendResult(Answer):
    """An issued batch: one transaction per recipient, in the order of the request."""

    transactions: list[Transaction]
    amount: Points = Field(description="The sum of the debited transactions.")
    current_balance: Points = Field(description="The balance right after this batch.")


class QueuedBatch(Answer):
    """A batch that is accepted and will be issued exactly once; read it at `Location`."""

    batch_id: Id
    status: Literal["queued"]


class Batch(Answer):
    """A batch as it is now."""

    batch_id: Id
    status: Literal["queued", "issued", "refused"]
    created_at: Time
    issued_at: Time | None
    transactions: list[Transaction] | None = Field(description="Null unless issued, like the two fields below.")
    amount: Points | None
    current_balance: Points | None


class ListedBatch(Answer):
    """A batch as it is now, without its transactions."""

    batch_id: Id
    status: Literal["queued", "issued", "refused"]
    created_at: Time
    issued_at: Time | None
    amount: Points | None = Field(description="The sum of the debited transactions; null until issued.")
    current_balance: Points | None = Field(description="The balance right after this batch; null until issued.")


_NextCursor = Annotated[str | None, Field(description="Leads to the next page; null at the end of the list.")]


class BatchList(Answer):
    """A page of batches, newest first."""

    batches: list[ListedBatch]
    next_cursor: _NextCursor


class TransactionList(Answer):
    """A page of transactions, newest first."""

    transactions: list[Transaction]
    next_cursor: _NextCursor


class Health(Answer):
    """That the process answers."""

    status: Literal["ok"]


class Readiness(Answer):
    """That PostgreSQL and Redis answer too."""

    status: Literal["ready"]
