"""The data of answers about a sandbox, and of what a registration has claimed."""

from pydantic import BaseModel

from app.api.openapi.answer_values import Additions
from app.ledger.claim import claims
from app.ledger.sandbox import NOW
from app.noun import Time, says


class SandboxTime(BaseModel):
    """The time of the sandbox."""

    now: Time = says("Its time from now on. ISO 8601 in UTC, six decimals.", str(NOW.example).replace("Z", ".000000Z"))


class ClaimedAdditions(Additions):
    """What was claimed."""

    claimed: claims.model = says("What was held for the address and is now credited.")  # type: ignore[name-defined]
