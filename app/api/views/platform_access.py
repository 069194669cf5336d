"""Who may use an organization: its keys and its members, as the platform makes them; and who did what."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Response, request
from pydantic import BaseModel

from app import api_keys, organizations
from app.api.calls import Answer, call
from app.api.listing import page_answer
from app.api.refusals import BAD_LIST_QUERY, NO_ORGANIZATION, bad_query, refusal
from app.api_keys import CreatedKey, new_keys
from app.errors import NotFound
from app.members import links
from app.members.links import NEW_MEMBER, MemberConflict, read_new_member
from app.members.members import ROLES
from app.noun_fields import Id, says, says_one_of
from app.pages import action_pages, lists
from app.pages.action_pages import actions
from app.platform.keys import ORGANIZATIONS_READ, ORGANIZATIONS_WRITE, PlatformCaller
from app.platform.requests import NEW_KEY, read_new_key
from app.postgres.database import transaction
from app.values.headers import is_https


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


_reading = partial(call, group="Platform", scopes=(ORGANIZATIONS_READ,))
_writing = partial(call, group="Platform", scopes=(ORGANIZATIONS_WRITE,))


@_writing(
    "POST /v1/platform/organizations/{id}/keys",
    "Make a key of an organization",
    body=NEW_KEY,
    read=read_new_key,
    sent={"new_key": {"name": "Till", "sandbox": True}},
    answers=Answer(
        status=201,
        about="The key.",
        data=new_keys.model,
        schema="NewKeyAnswer",
        examples={"key_made": {}},
    ),
    refuses=[NO_ORGANIZATION],
)
def create_key(who: PlatformCaller, organization_id: int, new: Mapping[str, Any]) -> dict[str, Any]:
    """The key is shown once and not stored. Needs the scope `organizations:write`."""
    with transaction(by=who.author) as connection:
        api_key_id, text = api_keys.create(connection, organization_id, **new)
    made = CreatedKey(api_key_id, text, organization_id, new["name"], new["sandbox"], *new["bounds"])
    return new_keys.payload(made)


@_reading(
    "GET /v1/platform/organizations/{id}/keys",
    "The keys of an organization, page by page",
    query="keys",
    answers=Answer(about="A page of the list.", data=api_keys.keys.page(), examples={"keys": {}}),
    refuses=[NO_ORGANIZATION, BAD_LIST_QUERY],
)
def list_keys(who: PlatformCaller, organization_id: int) -> Response:
    """Newest first, of both modes, revoked ones included. `next_cursor` leads to the next page and is null at the end.
    Needs the scope `organizations:read`.
    """
    require = partial(organizations.get_whole, organization_id=organization_id)
    rows = lists.keys
    return page_answer("keys", None, rows, api_keys.keys.payload, require=require, organization_id=organization_id)


@_writing(
    "DELETE /v1/platform/organizations/{id}/keys/{key_id}",
    "Revoke a key of an organization",
    answers=Answer(status=204, about="It is revoked. There is no body."),
    refuses=[
        refusal("NoKey", "The organization has no such key, or there is no such organization.", NotFound("key", 4))
    ],
)
def revoke_key(who: PlatformCaller, organization_id: int, key_id: int) -> None:
    """At once and for good; again is the same answer. Needs the scope `organizations:write`."""
    with transaction(by=who.author) as connection:
        api_keys.revoke(connection, key_id, organization_id=organization_id)


@_writing(
    "POST /v1/platform/organizations/{id}/members",
    "Make a member of an organization",
    body=NEW_MEMBER,
    read=read_new_member,
    sent={
        "new_member": {
            "email": "mary@example.com",
            "first_name": "Mary",
            "last_name": "Jackson",
            "role": "admin",
        }
    },
    answers=Answer(
        status=201,
        about="The member, with the link.",
        data=CreatedMember,
        schema="NewMemberAnswer",
        examples={"member_made": {}},
    ),
    refuses=[
        NO_ORGANIZATION,
        refusal("OtherMember", "A member of this or another organization has the address.", MemberConflict()),
    ],
)
def create_member(who: PlatformCaller, organization_id: int, new: Mapping[str, Any]) -> dict[str, Any]:
    """A person who may use the console. The link leads to the page where they choose a password; it is good once, for
    24 hours, and shown once. Needs the scope `organizations:write`.
    """
    with transaction(by=who.author) as connection:
        member_id, token = links.add(connection, organization_id, **new, by=None)
    origin = f"{'https' if is_https(request.environ) else 'http'}://{request.host}"
    return {"id": member_id, **new, "link": links.link_to(origin, token)}


@_reading(
    "GET /v1/platform/actions",
    "Who did what, page by page",
    query="actions",
    answers=Answer(about="A page of the list.", data=actions.page(), examples={"actions": {}}),
    refuses=[
        bad_query(
            "BadActionsQuery",
            {
                "by": "The by parameter must be member, platform_key or operator, or one of them such as member:7,"
                " platform_key:3 or operator:ada, but is “ada”."
            },
        )
    ],
)
def list_actions(who: PlatformCaller) -> Response:
    """What the platform's programs did with their keys, operators by commands, and members of organizations in the
    console, newest first. Each is written in the transaction of the deed and never changed. It names what it is about
    by ids. What an organization's programs do is in the list of its requests. Needs the scope `organizations:read`.

    {pages}
    """
    return page_answer("actions", None, action_pages.page, actions.payload)
