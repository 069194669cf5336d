"""The data of answers about the caller's organization, beside the organization itself."""

from pydantic import BaseModel

from app.api.openapi.answer_values import Additions
from app.noun import Points, Time, says


class Scheduled(BaseModel):
    """The scheduled batches of the organization in the key's mode. No points are reserved for them."""

    batches: int = says("How many batches are scheduled.", 0, ge=0)
    amount: Points = says("The points for all their recipients together, at most what 64 bits hold.", 0)
    next_at: Time | None = says("When the next one is due; null if there is none.", None)


class Limits(BaseModel):
    """The limits of a send; an operator may change them."""

    recipients: int = says("The most recipients.", 10_000, ge=1)
    amount: int = says("The most points for one recipient.", 1_000_000_000, ge=1, json_schema_extra={"format": "int64"})
    body_bytes: int = says("The most bytes of a body.", 8_388_608, ge=1)


class OrganizationAdditions(Additions):
    """The scheduled batches, and the limits of a send."""

    scheduled: Scheduled = says("The scheduled batches.")
    limits: Limits = says("The limits of a send.")
