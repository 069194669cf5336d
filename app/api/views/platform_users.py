"""`/v1/platform/users`: the platform registers, finds and changes users, and sees what made their balances."""

from functools import partial
from typing import Any

from flask import Blueprint, Response

from app import users
from app.api.answers import envelope
from app.api.auth import platform_caller, platform_caller_without_query
from app.api.listing import page_answer
from app.api.requests.body import read_json, refuse_fields
from app.erasing.erase import erase_user
from app.ledger.claim import claims
from app.ledger.registering import (
    Outcome,
    change_user,
    read_changes,
    read_new_user,
    read_new_users,
    register_many,
    register_user,
)
from app.pages import entry_pages, lists
from app.platform.keys import USERS_READ, USERS_WRITE
from app.postgres.database import transaction
from app.users import registered

blueprint = Blueprint("platform_users", __name__)


@blueprint.post("/v1/platform/users")
def register() -> Response:
    """Answer 201 with the new user and what it has claimed; 200 if it is registered already, with the same values."""
    by = platform_caller_without_query(USERS_WRITE).author
    new = read_json(read_new_user)
    with transaction(by=by) as connection:
        user, is_new, claimed = register_user(connection, new)
    response = envelope.success(
        registered.payload(user), status=201 if is_new else 200, claimed=claims.payload(claimed)
    )
    if is_new:
        response.headers["Location"] = f"/v1/platform/users/{user.id}"
    return response


@blueprint.post("/v1/platform/users/bulk")
def register_bulk() -> Response:
    """Answer 200 with the outcome of each user, in order. An entry at fault keeps no other back."""
    by = platform_caller_without_query(USERS_WRITE).author
    outcomes = register_many(read_json(read_new_users), by=by)
    return envelope.success({"users": list(map(_outcome_payload, outcomes))})


def _outcome_payload(outcome: Outcome) -> dict[str, Any]:
    """What became of one of many users."""
    user = None if outcome.user is None else registered.payload(outcome.user)
    return {"user": user, "status": outcome.status, "errors": outcome.faults}


@blueprint.get("/v1/platform/users")
def list_users() -> Response:
    """Answer 200 with a page of the users, newest first."""
    platform_caller(USERS_READ)
    return page_answer("users", None, lists.users, registered.payload)


@blueprint.get("/v1/platform/users/<int:user_id>")
def show(user_id: int) -> Response:
    """Answer 200 with the user."""
    platform_caller_without_query(USERS_READ)
    with transaction() as connection:
        user = users.get_by_id(connection, user_id)
    return envelope.success(registered.payload(user))


@blueprint.patch("/v1/platform/users/<int:user_id>")
def change(user_id: int) -> Response:
    """Answer 200 with the changed user, and what it has claimed by a new address."""
    by = platform_caller_without_query(USERS_WRITE).author
    changes = read_json(read_changes)
    with transaction(by=by) as connection:
        user, _, claimed = change_user(connection, user_id, changes)
    return envelope.success(registered.payload(user), claimed=claims.payload(claimed))


@blueprint.post("/v1/platform/users/<int:user_id>/erase")
def erase(user_id: int) -> Response:
    """Answer 200 with what is left of the user, also if it was erased before. With many transactions this lasts."""
    by = platform_caller_without_query(USERS_WRITE).author
    refuse_fields()
    return envelope.success(registered.payload(erase_user(user_id, by=by)))


@blueprint.get("/v1/platform/users/<int:user_id>/entries")
def list_entries(user_id: int) -> Response:
    """Answer 200 with a page of the entries."""
    platform_caller(USERS_READ)
    require = partial(users.require, user_id=user_id)
    return page_answer("entries", None, entry_pages.page, entry_pages.entries.payload, require=require, user_id=user_id)
