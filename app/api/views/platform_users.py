"""`/v1/platform/users`: the platform registers, finds and changes users."""

from flask import Blueprint, Response

from app import users
from app.api.answers import envelope
from app.api.answers.platform import claimed_payload, outcome_payload, user_payload
from app.api.auth import platform_caller
from app.api.requests.body import read_json, refuse_fields
from app.api.requests.query import query, refuse_parameters
from app.erasing.erase import erase_user
from app.ledger.registering import change_user, register_many, register_user
from app.ledger.user_requests import read_changes, read_new_user, read_new_users
from app.pages import user_pages
from app.pages.queries import next_cursor, parse_page_request
from app.platform.keys import USERS_READ, USERS_WRITE
from app.postgres.database import transaction

blueprint = Blueprint("platform_users", __name__)


@blueprint.post("/v1/platform/users")
def register() -> Response:
    """Answer 201 with the new user and what it has claimed; 200 if it is registered already, with the same values.

    Raises:
        InvalidRequest: with every fault of the body.
        UserConflict: the address or the external id is registered with other values.
    """
    by = platform_caller(USERS_WRITE).author
    refuse_parameters()
    new = read_json(read_new_user)
    with transaction(by=by) as connection:
        user, is_new, claimed = register_user(connection, new)
    response = envelope.success(user_payload(user), status=201 if is_new else 200, claimed=claimed_payload(claimed))
    if is_new:
        response.headers["Location"] = f"/v1/platform/users/{user.id}"
    return response


@blueprint.post("/v1/platform/users/bulk")
def register_bulk() -> Response:
    """Answer 200 with the outcome of each user, in order. An entry at fault keeps no other back.

    Raises:
        InvalidRequest: the body is not a list of 1 to 1,000 users.
    """
    by = platform_caller(USERS_WRITE).author
    refuse_parameters()
    outcomes = register_many(read_json(read_new_users), by=by)
    return envelope.success({"users": [outcome_payload(outcome) for outcome in outcomes]})


@blueprint.get("/v1/platform/users")
def list_users() -> Response:
    """Answer 200 with a page of the users, newest first."""
    platform_caller(USERS_READ)
    asked = parse_page_request("users", query(), None)
    with transaction() as connection:
        page = user_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    shown = [user_payload(user) for user in page.rows]
    return envelope.success({"users": shown, "next_cursor": next_cursor("users", asked, page)})


@blueprint.get("/v1/platform/users/<int:user_id>")
def show(user_id: int) -> Response:
    """Answer 200 with the user.

    Raises:
        NotFound: there is no such user.
    """
    platform_caller(USERS_READ)
    refuse_parameters()
    with transaction() as connection:
        user = users.get_by_id(connection, user_id)
    return envelope.success(user_payload(user))


@blueprint.patch("/v1/platform/users/<int:user_id>")
def change(user_id: int) -> Response:
    """Answer 200 with the changed user, and what it has claimed by a new address.

    Raises:
        InvalidRequest: with every fault of the body.
        NotFound: there is no such user.
        UserErased: it was erased.
        UserConflict: the address or the external id is that of another user.
    """
    by = platform_caller(USERS_WRITE).author
    refuse_parameters()
    changes = read_json(read_changes)
    with transaction(by=by) as connection:
        user, _, claimed = change_user(connection, user_id, changes)
    return envelope.success(user_payload(user), claimed=claimed_payload(claimed))


@blueprint.post("/v1/platform/users/<int:user_id>/erase")
def erase(user_id: int) -> Response:
    """Answer 200 with what is left of the user, also if it was erased before. Of many transactions this takes a while.

    Raises:
        NotFound: there is no such user.
        ErasureUnfinished: what began before still runs.
    """
    by = platform_caller(USERS_WRITE).author
    refuse_parameters()
    refuse_fields()
    return envelope.success(user_payload(erase_user(user_id, by=by)))
