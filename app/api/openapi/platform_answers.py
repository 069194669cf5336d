"""The data of answers to the platform, as models that only describe them (see answers.py)."""

from pydantic import BaseModel

from app.api.openapi.answers import Cursor, Id, Organization, Points, Time, says, says_one_of
from app.ledger.registering import OUTCOMES
from app.members.members import ROLES
from app.organizations import APPROVAL_OF


class PlatformUser(BaseModel):
    """A user as the platform sees it."""

    id: Id = says("The id of the user.", 7)
    email: str = says("The address by which the user is known, trimmed.", "ada@example.com")
    first_name: str = says("The given name.", "Ada")
    last_name: str = says("The family name; empty if there is none.", "Lovelace")
    external_id: str | None = says("Your own id of the user; null if there is none.", "customer-4711")
    balance: Points = says("The user's points, exact at this moment.", 50)
    created_at: Time = says("When it was registered. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")


class RegisteredUser(BaseModel):
    """What became of one of many users."""

    user: PlatformUser | None = says("The user; null if it is in conflict or at fault.")
    status: str = says_one_of(OUTCOMES, "Exists: it was registered before, with the same values.", "created")
    errors: dict[str, list[str]] | None = says(
        "Why it is not registered, by its place and field, such as `users.3.email`; null if it is.", None
    )


class RegisteredUsers(BaseModel):
    """The outcomes, in the order of the request."""

    users: list[RegisteredUser] = says("One for each user of the request.")


class UserList(BaseModel):
    """A page of users, newest first."""

    users: list[PlatformUser] = says("The users of this page.")
    next_cursor: Cursor


class PlatformOrganization(Organization):
    """An organization in both modes, with its options."""

    sandbox_balance: Points = says("The sandbox balance.", 1_000_000)
    sandbox_last_refill: Points = says("The sandbox balance right after its last refill.", 1_000_000)
    held_days: int | None = says("For how many days points are held; null: for ever.", 90)
    low_balance: Points | None = says("Below which live balance an event says so; null: never.", None)
    approval_above: Points | None = says("Above how many points of one batch it awaits an approval; null: never.", None)
    approval_of: str = says_one_of(APPROVAL_OF, "Whose sends await it: those of members, or all.", "console")


class OrganizationList(BaseModel):
    """A page of organizations, newest first."""

    organizations: list[PlatformOrganization] = says("The organizations of this page.")
    next_cursor: Cursor


class Refill(BaseModel):
    """Points put into a balance."""

    id: Id = says("The id of the refill.", 3)
    sandbox: bool = says("True: into the sandbox balance.", False)
    amount: int = says("The points. A reset of the sandbox may have taken some away.", 1_000)
    balance: Points = says("The balance right after it.", 2_000)
    reference: str | None = says("Your own name for it; null if it has none.", "invoice-7")
    created_at: Time = says("When it was booked. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")


class RefillList(BaseModel):
    """A page of refills, newest first."""

    refills: list[Refill] = says("The refills of this page.")
    next_cursor: Cursor


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
