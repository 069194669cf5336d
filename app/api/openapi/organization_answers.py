"""The data of answers about the caller's organization."""

from pydantic import BaseModel

from app.api.openapi.answer_values import Additions
from app.noun import Id, Points, Time, says


class Organization(BaseModel):
    """An organization, with the balance of the key's mode."""

    id: Id = says("The id of the organization.", 1)
    name: str = says("Its name.", "Acme")
    is_disabled: bool = says("True: it cannot issue until it is enabled.", False)
    is_suspended: bool = says("True: it cannot issue until it is resumed.", False)
    balance: Points = says("Its balance; in a transaction, the balance right after that transaction.", 1_000)
    last_refill: Points = says("The balance right after the last refill.", 1_000)
    created_at: Time = says("When it was made. ISO 8601 in UTC, six decimals.", "2026-01-05T08:00:00.000000Z")


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
