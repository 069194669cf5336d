"""The sandbox of an organization, to rehearse with: its clock, and its own users."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, NamedTuple

from sqlalchemy import Connection, text

from app.errors import InvalidRequest, SandboxUserLimit, UserConflict
from app.fields.field import Table
from app.fields.kinds import EMAIL, FIRST_NAME, LAST_NAME, Timestamp
from app.ledger.claim import CLAIM_ROWS_MAX, Claimed, claim_in_sandbox, claimed_at_registration
from app.ledger.registering import read_new_user
from app.noun import Noun
from app.noun_fields import Id, says
from app.postgres.locks import lock_organization
from app.users import NewUser
from app.values.timestamps import timestamp

AHEAD_MAX = timedelta(days=731)
USERS_MAX = 10_000

# An example must be ahead of us, and at most two years.
_NEXT_YEAR = datetime.now(UTC).year + 1
NOW = Timestamp(
    "now",
    f"The time of the sandbox from now on: not before its present time, at most {AHEAD_MAX.days} days ahead of ours.",
    f"{_NEXT_YEAR}-12-31T09:30:00Z",
    is_required=True,
)
CLOCK = Table("SandboxClock", "A time for the sandbox.", NOW)
NEW_USER = Table("NewSandboxUser", "A user of the sandbox.", EMAIL, FIRST_NAME, LAST_NAME)


def set_clock(connection: Connection, organization_id: int, now: datetime) -> None:
    """Set the time of an organization's sandbox, for schedules, held points and every stamp.

    The organization's row is locked, so that no drain stamps a part of its work by the old time.

    Raises:
        InvalidRequest: the time is before that of the sandbox, or too far ahead.
    """
    lock_organization(connection, organization_id)
    clock = connection.execute(_CLOCK, {"id": organization_id}).one()
    if now < clock.of_sandbox:
        sentence = f"The now must not be before the time of the sandbox, {timestamp(clock.of_sandbox)}: a reset puts it"
        raise InvalidRequest({"now": [f"{sentence} back."]})
    if now > clock.real + AHEAD_MAX:
        sentence = f"The now must be at most {AHEAD_MAX.days} days ahead, until {timestamp(clock.real + AHEAD_MAX)}"
        raise InvalidRequest({"now": [f"{sentence}, but is {timestamp(now)}."]})
    connection.execute(_SET_CLOCK, {"id": organization_id, "ahead_s": (now - clock.real).total_seconds()})


_CLOCK = text("""
    SELECT real, real + sandbox_ahead AS of_sandbox
    FROM (SELECT clock_timestamp() AS real) clock, organizations WHERE id = :id
""")
_SET_CLOCK = text("UPDATE organizations SET sandbox_ahead = make_interval(secs => :ahead_s) WHERE id = :id")


class SandboxUser(NamedTuple):
    """A user of the sandbox."""

    id: Annotated[Id, says("The id of the user.", 8)]
    email: Annotated[str, says("The address, trimmed.", "ada@example.com")]
    first_name: Annotated[str, says("The given name.", "Ada")]
    last_name: Annotated[str, says("The family name; empty if there is none.", "Lovelace")]
    created_at: Annotated[
        datetime, says("When it was registered, by the clock of the sandbox.", "2026-01-31T09:30:00.000000Z")
    ]


users = Noun(SandboxUser, "user", "users")


read_user = partial(read_new_user, table=NEW_USER)


def register(connection: Connection, organization_id: int, user: NewUser) -> tuple[SandboxUser, bool, Claimed]:
    """Register a user of an organization's sandbox, and claim what its sandbox holds for the address.

    Return the user, whether it is new, and what its registration has claimed. The organization's row is locked: no
    issue runs meanwhile, so none misses the user.

    Raises:
        UserConflict: the address is registered with other names.
        SandboxUserLimit: there are too many users.
    """
    lock_organization(connection, organization_id)
    values = {
        "sandbox_of": organization_id,
        "email": user.address.text,
        "email_key": user.address.key,
        "first_name": user.first_name,
        "last_name": user.last_name,
    }
    known = connection.execute(_FIND, values).one_or_none()
    if known is not None:
        if (known.first_name, known.last_name) != (user.first_name, user.last_name):
            raise UserConflict
        return SandboxUser._make(known), False, claimed_at_registration(connection, known.id)
    if connection.execute(_COUNT, values | {"at_most": USERS_MAX}).scalar_one() >= USERS_MAX:
        raise SandboxUserLimit(USERS_MAX)
    registered = SandboxUser._make(connection.execute(_INSERT, values).one())
    while claim_in_sandbox(connection, registered.id, organization_id).transactions == CLAIM_ROWS_MAX:
        pass
    return registered, True, claimed_at_registration(connection, registered.id)


_FIND = text(f"SELECT {users.columns} FROM users WHERE (sandbox_of, email_key) = (:sandbox_of, :email_key)")
_COUNT = text("SELECT count(*) FROM (SELECT FROM users WHERE sandbox_of = :sandbox_of LIMIT :at_most) known")
_INSERT = text(f"""
    INSERT INTO users (email, email_key, first_name, last_name, sandbox_of, created_at)
    VALUES (:email, :email_key, :first_name, :last_name, :sandbox_of, time_of(:sandbox_of, true))
    RETURNING {users.columns}
""")
