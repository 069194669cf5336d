"""The data of answers about a sandbox, and of what a registration has claimed."""

from pydantic import BaseModel

from app.api.openapi.answer_values import Additions
from app.ledger.sandbox import NOW
from app.noun import Id, Points, Time, says


class SandboxTime(BaseModel):
    """The time of the sandbox."""

    now: Time = says("Its time from now on. ISO 8601 in UTC, six decimals.", str(NOW.example).replace("Z", ".000000Z"))


class SandboxUser(BaseModel):
    """A user of the sandbox."""

    id: Id = says("The id of the user.", 8)
    email: str = says("The address, trimmed.", "ada@example.com")
    first_name: str = says("The given name.", "Ada")
    last_name: str = says("The family name; empty if there is none.", "Lovelace")
    created_at: Time = says("When it was registered, by the clock of the sandbox.", "2026-01-31T09:30:00.000000Z")


class Claimed(BaseModel):
    """What was held for the address and is now credited."""

    transactions: int = says("How many transactions.", 1, ge=0)
    amount: Points = says("Their points together.", 50)


class ClaimedAdditions(Additions):
    """What was claimed."""

    claimed: Claimed = says("What was held for the address and is now credited.")
