"""`POST /v1/sandbox/reset`, `/clock` and `/users`: the sandbox itself, for development keys."""

from datetime import datetime
from functools import partial
from typing import Any

from flask import Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app import organizations
from app.api.calls import Additions, Answer, call
from app.api.envelope import success
from app.api.openapi.examples import ADA, acme
from app.api.refusals import refusal
from app.api_keys import Caller
from app.errors import PointsError, SandboxUserLimit, UserConflict
from app.ledger import refill, sandbox
from app.ledger.claim import claims
from app.noun_fields import Time, says
from app.postgres.database import transaction
from app.scope import Scope
from app.users import NewUser
from app.values.key_bounds import SEND
from app.values.timestamps import timestamp


class DevelopmentKeyRequired(PointsError):
    """A live key was used for a call that only the sandbox has."""

    status = 403
    field = "authorization"
    says = "Only a development key may change the sandbox, but this is a live key."


class SandboxTime(BaseModel):
    """The time of the sandbox."""

    now: Time = says(
        "Its time from now on. ISO 8601 in UTC, six decimals.", str(sandbox.NOW.example).replace("Z", ".000000Z")
    )


class ClaimedAdditions(Additions):
    """What was claimed."""

    claimed: claims.model = says("What was held for the address and is now credited; told again by a repetition.")  # type: ignore[name-defined]


def _require_sandbox(who: Caller) -> None:
    if not who.sandbox:
        raise DevelopmentKeyRequired


_LIVE_KEY = refusal("LiveKey", "The key is a live key, and only a sandbox can be changed so.", DevelopmentKeyRequired())
_of_sandbox = partial(call, group="Organization", scopes=(SEND,))


@_of_sandbox(
    "POST /v1/sandbox/reset",
    "Put the sandbox balance and clock back",
    answers=Answer(
        about="The organization, with its new balance.",
        data=organizations.in_mode.model,
        examples={"sandbox_reset": acme(1_000_000, last_refill=1_000_000)},
    ),
    refuses=[_LIVE_KEY],
)
def reset_sandbox(who: Caller) -> dict[str, Any]:
    """For development keys only. The difference is booked as a refill; batches, transactions and users stay. The clock
    of the sandbox is put back too. Works also while the organization is disabled or suspended, since nothing is issued.
    """
    _require_sandbox(who)
    with transaction() as connection:
        refill.reset_sandbox(connection, who.organization.id)
        organization = organizations.get(connection, Scope(who.organization.id, sandbox=True))
    return organizations.in_mode.payload(organization)


@_of_sandbox(
    "POST /v1/sandbox/clock",
    "Set the time of the sandbox",
    first=_require_sandbox,
    body=sandbox.CLOCK,
    read=sandbox.NOW.read_alone,
    sent={"next_year": {"now": sandbox.NOW.example}},
    answers=Answer(about="The time of the sandbox.", data=SandboxTime, examples={"sandbox_time": {}}),
    refuses=[_LIVE_KEY],
)
def set_sandbox_clock(who: Caller, now: datetime) -> dict[str, Any]:
    """For development keys only. Schedules, held points and every time that the sandbox shows go by it: what has become
    due is issued or returned within seconds. It goes forwards only; a reset puts it back.
    """
    with transaction() as connection:
        sandbox.set_clock(connection, who.organization.id, now)
    return {"now": timestamp(now)}


@_of_sandbox(
    "POST /v1/sandbox/users",
    "Register a user of the sandbox",
    first=_require_sandbox,
    body=sandbox.NEW_USER,
    read=sandbox.read_user,
    sent={"ada": {"email": ADA, "first_name": "Ada", "last_name": "Lovelace"}},
    answers=[
        Answer(
            about="The address was registered before, with the same names.",
            data=sandbox.users.model,
            beside=ClaimedAdditions,
            examples={"known_in_sandbox": {}},
        ),
        Answer(
            status=201,
            about="The user, and what was claimed.",
            data=sandbox.users.model,
            beside=ClaimedAdditions,
            examples={"registered_in_sandbox": {}},
        ),
    ],
    refuses=[
        refusal(
            "NoSandboxUser",
            "The key is a live key, or the sandbox already has 10,000 users.",
            *(DevelopmentKeyRequired(), SandboxUserLimit),
            examples=["not_of_live"],
        ),
        refusal("OtherNames", "The address is registered with other names.", UserConflict()),
    ],
    makes_once=True,
)
def register_sandbox_user(who: Caller, connection: Connection, new: NewUser) -> Response:
    """For development keys only. The user is known in this sandbox only, which knows no others, and claims what it
    holds for the address. Repeating the call changes nothing.
    """
    user, is_new, claimed = sandbox.register(connection, who.organization.id, new)
    return success(
        sandbox.users.payload(user),
        status=201 if is_new else 200,
        claimed=claims.payload(claimed),
    )
