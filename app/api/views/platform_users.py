"""`/v1/platform/users`: the platform registers, finds and changes users, and sees what made their balances."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app import users
from app.api.calls import Answer, call
from app.api.envelope import success
from app.api.listing import page_answer
from app.api.openapi.examples import ADA
from app.api.refusals import BAD_LIST_QUERY, bad_query, refusal
from app.api.views.sandbox import ClaimedAdditions
from app.erasing.erase import ErasureUnfinished
from app.erasing.erase import erase_user as erase
from app.errors import NotFound, UserConflict
from app.ledger import registering
from app.ledger.claim import claims
from app.ledger.registering import CHANGED_USER, NEW_USER, NEW_USERS, OUTCOMES, Outcome
from app.noun_fields import example, says, says_one_of
from app.pages import entry_pages, lists
from app.pages.entry_pages import entries
from app.platform.keys import USERS_CHANGE, USERS_ERASE, USERS_READ, USERS_REGISTER, PlatformCaller
from app.postgres.database import single_statement, transaction
from app.users import NewUser, UserErased, registered


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


_USER = {"email": ADA, "first_name": "Ada", "last_name": "Lovelace", "external_id": "customer-4711"}
_AT_FAULT = {
    "user": None,
    "status": "conflict",
    "errors": {"users.1.email": ["The email must be an e-mail address: it has no @-sign."]},
}
_TAKEN_BACK = {"type": "reversal", "amount": -20, "reversal_id": 2, "created_at": "2026-02-01T09:00:00.000000Z"}
_NO_USER = refusal("NoUser", "There is no such user.", NotFound("user", 7))
_claiming = partial(Answer, data=registered.model, beside=ClaimedAdditions, schema="ClaimingUserAnswer")
_call = partial(call, group="Platform")


@_call(
    "POST /v1/platform/users",
    "Register a user",
    scopes=(USERS_REGISTER,),
    body=NEW_USER,
    read=registering.read_new_user,
    sent={"new_user": _USER},
    answers=[
        _claiming(
            about="The address was registered before, with the same values.",
            examples={"known_user": {}},
        ),
        _claiming(
            status=201,
            about="The user, and what was claimed.",
            examples={"registered_user": {}},
            headers=["Location"],
            links={"user": ("showUser", "$response.body#/data/id")},
        ),
    ],
    refuses=[
        refusal(
            "OtherUser",
            "The address is registered with other names or another `external_id`; or the `external_id` is that of a"
            " user with another address. Nothing was written.",
            UserConflict("The email is that of user 7, who has other names."),
        )
    ],
    makes_once=True,
)
def register_user(who: PlatformCaller, connection: Connection, new: NewUser) -> Response:
    """Registers a user, and credits what is held for the address. Repeating the call changes nothing, so a retry needs
    no key.
    """
    user, is_new, claimed = registering.register_user(connection, new)
    response = success(registered.payload(user), status=201 if is_new else 200, claimed=claims.payload(claimed))
    if is_new:
        response.headers["Location"] = f"/v1/platform/users/{user.id}"
    return response


@_call(
    "POST /v1/platform/users/bulk",
    "Register up to 1,000 users",
    scopes=(USERS_REGISTER,),
    body=NEW_USERS,
    read=registering.read_new_users,
    sent={"new_users": {"users": [_USER, {"email": "grace", "first_name": "Grace", "last_name": "Hopper"}]}},
    answers=Answer(
        about="The outcome of each.",
        data=RegisteredUsers,
        examples={
            "registered_users": {"users": [example(RegisteredUser), example(RegisteredUser, **_AT_FAULT)]},
        },
    ),
    makes_once=True,
    in_steps=True,
)
def register_users(who: PlatformCaller, new: Any) -> dict[str, Any]:
    """Registers users in the order of the request, and credits what is held for each. An entry at fault or in conflict
    is answered at its place and keeps no other back. Repeating the call changes nothing.
    """
    return {"users": list(map(_outcome_payload, registering.register_many(new, by=who.author)))}


def _outcome_payload(outcome: Outcome) -> dict[str, Any]:
    """What became of one of many users."""
    user = None if outcome.user is None else registered.payload(outcome.user)
    return {"user": user, "status": outcome.status, "errors": outcome.faults}


@_call(
    "GET /v1/platform/users",
    "All users, page by page",
    scopes=(USERS_READ,),
    query="users",
    answers=Answer(about="A page of the list.", data=registered.page(), examples={"users": {}}),
    refuses=[bad_query("BadUsersQuery", {"email": "The email parameter must be an e-mail address: it has no @-sign."})],
)
def list_users(who: PlatformCaller) -> Response:
    """The users, each with its exact balance, newest first. `next_cursor` leads to the next page and is null at the
    end. A cursor does not expire.
    """
    return page_answer("users", None, lists.users, registered.payload)


@_call(
    "GET /v1/platform/users/{id}",
    "One user, with the balance",
    scopes=(USERS_READ,),
    answers=Answer(about="The user.", data=registered.model, examples={"user": {}}),
    refuses=[_NO_USER],
)
def show_user(who: PlatformCaller, user_id: int) -> dict[str, Any]:
    """The balance is exact at that moment."""
    with single_statement() as connection:
        return registered.payload(users.get_by_id(connection, user_id))


@_call(
    "PATCH /v1/platform/users/{id}",
    "Change a user",
    scopes=(USERS_CHANGE,),
    body=CHANGED_USER,
    read=registering.read_changes,
    sent={"changed_user": {"email": "ada@example.org"}},
    answers=_claiming(
        about="The user, and what was claimed by a new address.",
        examples={"user_changed": {"email": "ada@example.org"}},
    ),
    refuses=[
        _NO_USER,
        refusal(
            "AnotherUser",
            "The address or the `external_id` is that of another user; or the user was erased. Nothing was changed.",
            *(UserConflict("The email is that of another user."), UserErased()),
            examples=["another_user", "erased"],
        ),
    ],
)
def change_user(who: PlatformCaller, user_id: int, changes: Mapping[str, Any]) -> Response:
    """Changes the fields that are sent. A new address is the one by which the user is known from then on: what is held
    for it is credited, and what the user has stays.
    """
    with transaction(by=who.author) as connection:
        user, _, claimed = registering.change_user(connection, user_id, changes)
    return success(registered.payload(user), claimed=claims.payload(claimed))


@_call(
    "POST /v1/platform/users/{id}/erase",
    "Erase a user for good",
    scopes=(USERS_ERASE,),
    answers=Answer(
        about="What is left of the user.",
        data=registered.model,
        examples={
            "user_erased": {
                **dict.fromkeys(("email", "first_name", "last_name"), "erased-7"),
                "external_id": None,
            }
        },
    ),
    refuses=[
        _NO_USER,
        refusal(
            "Unfinished",
            "The user is erased, but a copy of its address may be left; or the database is out of reach. Make the call"
            " again.",
            ErasureUnfinished(),
        ),
    ],
)
def erase_user(who: PlatformCaller, user_id: int) -> dict[str, Any]:
    """The names and addresses of the user become `erased-<id>`: in the user, its transactions, their batches and
    reversals, events and uploaded lists. The id, the balance and all amounts stay, and a replay of a batch answers with
    what is left. Of a batch that is not issued yet, this recipient will not be debited. What is sent to the address
    later finds no account; who registers with it is a new user. Of a user with many transactions this takes some
    seconds. Repeating the call goes on where it was interrupted, or changes nothing.
    """
    return registered.payload(erase(user_id, by=who.author))


@_call(
    "GET /v1/platform/users/{id}/entries",
    "What made a user's balance, page by page",
    scopes=(USERS_READ,),
    query="entries",
    answers=Answer(
        about="A page of the list.",
        data=entries.page(),
        examples={"entries": {"entries": [example(entries.model, **_TAKEN_BACK), example(entries.model)]}},
    ),
    refuses=[_NO_USER, BAD_LIST_QUERY],
)
def list_entries(who: PlatformCaller, user_id: int) -> Response:
    """Credits, and what was taken back of them, newest first. Their sum is the balance: nothing is left out or comes
    twice while points are issued, claimed and taken back, and what is new comes first. `next_cursor` leads to the next
    page and is null at the end.
    """
    require = partial(users.require, user_id=user_id)
    return page_answer("entries", None, entry_pages.page, entries.payload, require=require, user_id=user_id)
