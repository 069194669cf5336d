"""What the service answers to the platform: users, organizations and refills.

Points are whole, moments in UTC. Fields that a newer service adds are ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
class NewMember:
    """A member for the console, with the link to choose a password: good once, for 24 hours."""

    id: int
    email: str
    first_name: str
    last_name: str
    role: str
    link: str


def read_user(answer: Answer) -> PlatformUser:
    """Return an answer as a user, with what was claimed."""
    return read(PlatformUser, {**answer.data, "claimed": answer.additional.get("claimed")})


def read_outcomes(answer: Answer) -> list[RegisteredUser]:
    """Return an answer as what became of each user."""
    return [read(RegisteredUser, outcome) for outcome in answer.data["users"]]
