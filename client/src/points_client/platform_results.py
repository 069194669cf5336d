"""What the service answers to the platform: users, organizations, their refills and keys, and actions.

Points are whole, moments in UTC. Fields that a newer service adds are ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from points_client.answers import Answer
from points_client.reading import read
from points_client.results import Claimed


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformUser:
    """A user with the balance, exact at that moment. `claimed` is what the call has credited; None if it reads only."""

    id: int
    email: str
    first_name: str
    last_name: str
    balance: int
    created_at: datetime
    external_id: str | None = None
    claimed: Claimed | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisteredUser:
    """What became of one of many users: `created`, `exists` (with the same values), or `conflict`, then with `errors`.

    `errors` are sentences by place and field, such as `users.3.email`.
    """

    status: str
    user: PlatformUser | None = None
    errors: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class IssuingOrganization:
    """The organization whose points an entry tells of."""

    id: int
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What made a balance: a `credit`, or what a `reversal` took back of one, its `amount` below 0."""

    type: str
    amount: int
    transaction_id: int
    organization: IssuingOrganization
    created_at: datetime
    reversal_id: int | None = None
    label: str | None = None
    reference: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformOrganization:
    """An organization in both modes. `held_days` None: for ever; `low_balance` None: no event says so.

    Sends of more points than `approval_above` (None: none) await an approval: the console's, or `approval_of` `all`.
    """

    id: int
    name: str
    is_disabled: bool
    is_suspended: bool
    balance: int
    last_refill: int
    sandbox_balance: int
    sandbox_last_refill: int
    created_at: datetime
    held_days: int | None = None
    low_balance: int | None = None
    approval_above: int | None = None
    approval_of: str = "console"


@dataclass(frozen=True, kw_only=True, slots=True)
class Refill:
    """Points put into a balance, and the balance right after it."""

    id: int
    sandbox: bool
    amount: int
    balance: int
    created_at: datetime
    reference: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewKey:
    """A key of an organization. `key` is shown when it is made, and never again."""

    id: int
    key: str = field(repr=False)
    organization_id: int
    sandbox: bool
    name: str | None = None
    scopes: tuple[str, ...] | None = None
    expires_at: datetime | None = None
    batch_limit: int | None = None
    daily_limit: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A key of an organization, by its first characters. `revoked_at` None: it is good."""

    id: int
    organization_id: int
    sandbox: bool
    start: str
    created_at: datetime
    name: str | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    scopes: tuple[str, ...] | None = None
    expires_at: datetime | None = None
    batch_limit: int | None = None
    daily_limit: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMember:
    """A member for the console, with the link to choose a password: good once, for 24 hours."""

    id: int
    email: str
    first_name: str
    last_name: str
    role: str
    link: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionAuthor:
    """Who did something: `type` is `member`, `platform_key` or `operator`. An operator has no id."""

    type: str
    name: str
    id: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionOrganization:
    """The organization that an action concerns."""

    id: int
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """Who did what, when. `by` None: somebody unknown; `subject_id` is the id of what was made or changed."""

    id: int
    created_at: datetime
    action: str
    by: ActionAuthor | None = None
    organization: ActionOrganization | None = None
    subject_id: int | None = None
    sandbox: bool | None = None
    detail: str | None = None


def read_user(answer: Answer) -> PlatformUser:
    """Return an answer as a user, with what was claimed."""
    return read(PlatformUser, {**answer.data, "claimed": answer.additional.get("claimed")})


def read_outcomes(answer: Answer) -> list[RegisteredUser]:
    """Return an answer as what became of each user."""
    return [read(RegisteredUser, outcome) for outcome in answer.data["users"]]
