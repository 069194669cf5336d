"""The data of answers to the platform."""

from typing import Annotated, Any

from pydantic import BaseModel

from app.api.openapi.event_answers import EventId, EventTime, LastSequence
from app.events.log import PLATFORM_TYPES
from app.ledger.registering import OUTCOMES
from app.members.members import ROLES
from app.noun import Cursor, Id, Null, Points, Time, says, says_one_of
from app.pages.entry_pages import TYPES
from app.values.authors import KINDS


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


class IssuingOrganization(BaseModel):
    """The organization whose points they are."""

    id: Id = says("The id of the organization.", 1)
    name: str = says("Its name.", "Acme")


class Entry(BaseModel):
    """A credit of a user, or what was taken back of one."""

    type: str = says_one_of(TYPES, "Reversal: points were taken back.", "credit")
    amount: int = says("The points; below 0 if they were taken back.", 50)
    transaction_id: Id = says("The id of the transaction.", 131_072)
    reversal_id: Id | None = says("The id of the reversal; null for a credit.", None)
    organization: IssuingOrganization = says("Who issued them.")
    label: str | None = says("The label of the transaction; null if it has none.", "January bonus")
    reference: str | None = says("The organization's own id of the transaction; null if it has none.", None)
    created_at: Time = says(
        "When they were issued, claimed or taken back. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z"
    )


class EntryList(BaseModel):
    """A page of entries, newest first."""

    entries: list[Entry] = says("The entries of this page.")
    next_cursor: Cursor


class ActionAuthor(BaseModel):
    """Who did something."""

    type: str = says_one_of(KINDS, "What kind of author it is.", "platform_key")
    id: Id | None = says("The id of the member or the platform key; null for an operator.", 3)
    name: str = says("The name of the member or the key; for an operator that of the system user.", "Billing")


class ActionOrganization(BaseModel):
    """The organization that an action concerns."""

    id: Id = says("The id of the organization.", 1)
    name: str = says("Its name of now.", "Acme")


class Action(BaseModel):
    """Who did what, and when."""

    id: Id = says("The id of the action.", 12)
    created_at: Time = says("When it was done. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    action: str = says("What was done, in a word. Other words may come.", "balance.refilled")
    by: ActionAuthor | None = says("Who did it; null: somebody unknown, who gave a wrong password.")
    organization: ActionOrganization | None = says("Whose matter it is; null: nobody's, such as a user.")
    subject_id: int | None = says("The id of what was made or changed; null if it is of several.", 3)
    sandbox: bool | None = says("The mode; null if it has none.", False)
    detail: str | None = says("What the id does not say, such as the points; null: nothing.", "1000")


class ActionList(BaseModel):
    """A page of actions, newest first."""

    actions: list[Action] = says("The actions of this page.")
    next_cursor: Cursor


_Scopes = Annotated[list[str] | None, says("What it may do; null: everything.", None)]
_End = Annotated[Time | None, says("From when it opens nothing; null: it has no end.", None)]
_BatchLimit = Annotated[Points | None, says("The most points of one batch; null: no limit.", None)]
_DailyLimit = Annotated[Points | None, says("The most points of one day in UTC; null: no limit.", None)]


class CreatedKey(BaseModel):
    """A key, which is shown once."""

    id: Id = says("The id of the key.", 4)
    key: str = says("The key. It is shown once: store it now.", "pts_dev_…")
    organization_id: Id = says("The organization that it belongs to.", 1)
    name: str | None = says("What people call it; null if it has no name.", "Till")
    sandbox: bool = says("True: a development key, for the sandbox.", True)
    scopes: _Scopes
    expires_at: _End
    batch_limit: _BatchLimit
    daily_limit: _DailyLimit


class Key(BaseModel):
    """A key of an organization."""

    id: Id = says("The id of the key.", 4)
    organization_id: Id = says("The organization that it belongs to.", 1)
    sandbox: bool = says("True: a development key, for the sandbox.", True)
    name: str | None = says("What people call it; null if it has no name.", "Till")
    start: str = says("Its first characters.", "pts_dev_S3nT")
    scopes: _Scopes
    expires_at: _End
    batch_limit: _BatchLimit
    daily_limit: _DailyLimit
    created_at: Time = says("When it was made. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    last_used_at: Time | None = says("When it was last used, to the minute; null: never.", None)
    revoked_at: Time | None = says("When it was revoked; null: it is good.", None)


class KeyList(BaseModel):
    """A page of keys, newest first."""

    keys: list[Key] = says("The keys of this page.")
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
