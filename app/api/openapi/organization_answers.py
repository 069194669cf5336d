"""The data of answers about an organization, its statement, sandbox and members, and about users, beside their rows."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from app.api.openapi.answer_values import Additions
from app.batches.schedule import schedules
from app.ledger.claim import claims
from app.ledger.registering import OUTCOMES
from app.ledger.sandbox import NOW
from app.members.members import ROLES
from app.noun import Id, Time, says, says_one_of
from app.statement.read import lines
from app.users import registered


class Limits(BaseModel):
    """The limits of a send; an operator may change them."""

    recipients: int = says("The most recipients.", 10_000, ge=1)
    amount: int = says("The most points for one recipient.", 1_000_000_000, ge=1, json_schema_extra={"format": "int64"})
    body_bytes: int = says("The most bytes of a body.", 8_388_608, ge=1)


class OrganizationAdditions(Additions):
    """The scheduled batches, and the limits of a send."""

    scheduled: schedules.model = says("The scheduled batches.")  # type: ignore[name-defined]
    limits: Limits = says("The limits of a send.")


Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$", json_schema_extra={"format": "date"})]
_Day = create_model(
    "StatementDay",
    __base__=lines.model,
    __doc__="One day in UTC. It opens as the day before closed.",
    date=(Day, says("The day.", "2026-01-31")),
)
_FIELDS: dict[str, Any] = {
    "from": (Day, says("The first day.", "2026-01-31")),
    "to": (Day, says("The last day.", "2026-01-31")),
    "days": (
        list[_Day],  # type: ignore[valid-type]
        says("Each day, in order, also those on which nothing moved the balance."),
    ),
    "total": (lines.model, says("All days together.")),
}
Statement = create_model("Statement", __doc__="What moved the balance, day by day.", **_FIELDS)


class SandboxTime(BaseModel):
    """The time of the sandbox."""

    now: Time = says("Its time from now on. ISO 8601 in UTC, six decimals.", str(NOW.example).replace("Z", ".000000Z"))


class ClaimedAdditions(Additions):
    """What was claimed."""

    claimed: claims.model = says("What was held for the address and is now credited.")  # type: ignore[name-defined]


class RegisteredUser(BaseModel):
    """What became of one of many users."""

    user: registered.model | None = says("The user; null if it is in conflict or at fault.")  # type: ignore[name-defined]
    status: str = says_one_of(OUTCOMES, "Exists: it was registered before, with the same values.", "created")
    errors: dict[str, list[str]] | None = says(
        "Why it is not registered, by its place and field, such as `users.3.email`; null if it is.", None
    )


class RegisteredUsers(BaseModel):
    """The outcomes, in the order of the request."""

    users: list[RegisteredUser] = says("One for each user of the request.")


class CreatedMember(BaseModel):
    """A member, with the link that is shown once."""

    id: Id = says("The id of the member.", 2)
    email: str = says("The address, trimmed.", "mary@example.com")
    first_name: str = says("The given name.", "Mary")
    last_name: str = says("The family name; empty if there is none.", "Jackson")
    role: str = says_one_of(ROLES, "What the member may do.", "admin")
    link: str = says(
        "Where the member chooses a password: good once, for 24 hours.", "https://points.example.com/console/link/YwT4"
    )
