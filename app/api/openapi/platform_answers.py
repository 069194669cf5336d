"""The data of answers to the platform."""

from typing import Any

from pydantic import BaseModel

from app.api.openapi.event_answers import EventId, EventTime, LastSequence
from app.events.log import PLATFORM_TYPES
from app.ledger.registering import OUTCOMES
from app.members.members import ROLES
from app.noun import Id, Null, says, says_one_of
from app.users import registered


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


class PlatformEvent(BaseModel):
    """One thing that happened to a user or an organization. An event never changes."""

    type: str = says_one_of(PLATFORM_TYPES, "What happened.", "user.registered")
    timestamp: EventTime
    id: EventId = says("The id of the event.", "evt_9")
    sequence: Id = says("Its place in the log of the platform: 1, 2, 3 … without a gap.", 4)
    sandbox: bool = says("Always false: the platform has one log.", False)
    version: str = says("The version of this format.", "1.0")
    organization: Null = says("Always null: the log is the platform's. `data` has what the event is about.", None)
    data: dict[str, Any] = says(
        "What it is about. `user` has its `id` alone, with `fields`, the names of those that changed. `organization` is"
        " as it was then, with the live balance, or with that of the sandbox if `sandbox` is true; a refill also has"
        " `amount` and `reference`. There are no addresses and no names of users.",
        {"user": {"id": 7}},
    )


class PlatformEventList(BaseModel):
    """The next events, oldest first."""

    events: list[PlatformEvent] = says("The events after `after`.")
    last_sequence: LastSequence
