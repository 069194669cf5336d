"""The data of answers about a send that is only looked at: verified, or compared with what was sent before."""

from pydantic import BaseModel

from app.api.openapi.answer_values import Additions
from app.batches.errors import InsufficientBalance, KeyLimit
from app.batches.sent_lately import NAMED_MAX, alike
from app.noun import Points, says, says_one_of
from app.organizations import MAY_NOT_ISSUE


class Verdict(BaseModel):
    """Whether the whole issue is possible now."""

    validated: bool = says("True: it is possible.", True)
    error: str | None = says("Why not, as a sentence; null when it is possible.", None)


class VerifyAdditions(Additions):
    """The verdict, for programs."""

    code: str | None = says_one_of(
        (InsufficientBalance.code, KeyLimit.code, *MAY_NOT_ISSUE),
        "Why not, as a stable word; null when it is possible.",
        None,
    )
    required: Points = says("Points for all recipients together.", 100)
    available: Points = says("The balance of the organization.", 1_000)
    affordable_recipients: int = says("How many recipients, from the first on, the balance pays.", 2, ge=0)


class SentBefore(BaseModel):
    """How many of the recipients were sent the same lately, each counted once, by what was most alike."""

    days: int = says("How far back the batches were compared, from now.", 30, ge=1)
    recipients: int = says("The sum of the next three.", 2, ge=0)
    same: int = says("The same amount with the same label, or both without a label.", 2, ge=0)
    same_label: int = says("Another amount with the same label.", 0, ge=0)
    same_amount: int = says("The same amount with another label.", 0, ge=0)
    batch_count: int = says("How many batches these are in.", 1, ge=0)
    batches: list[alike.model] = says(  # type: ignore[name-defined]
        f"Up to {NAMED_MAX} of them, those with the most of the recipients first."
    )
    complete: bool = says("False: there were so many batches that only the newest ones were compared.", True)
