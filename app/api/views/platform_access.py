"""Who may use an organization: its keys and its members, as the platform makes them; and who did what."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

from flask import Response
from sqlalchemy import Connection

from app import api_keys, organizations
from app.api.calls import Answer, call
from app.api.listing import page_answer
from app.api.refusals import BAD_LIST_QUERY, NO_ORGANIZATION, bad_query, refusal
from app.api_keys import CreatedKey, new_keys
from app.errors import NotFound
from app.members import links, members
from app.members.links import NEW_MEMBER, MemberConflict, NoPublicUrl, read_new_member
from app.members.members import FamilyName, GivenName, Member, MemberEmail, MemberId, MemberRole
from app.noun import Noun
from app.noun_fields import says
from app.pages import action_pages, lists
from app.pages.action_pages import actions
from app.platform.keys import KEYS_WRITE, MEMBERS_READ, MEMBERS_WRITE, ORGANIZATIONS_READ, PlatformCaller
from app.platform.requests import NEW_KEY, read_new_key
from app.postgres.database import transaction
from app.settings import settings


class CreatedMember(NamedTuple):
    """A member, with the link that is shown once."""

    id: MemberId
    email: MemberEmail
    first_name: GivenName
    last_name: FamilyName
    role: MemberRole
    link: Annotated[
        str,
        says(
            "Where the member chooses a password: good once, for 24 hours.",
            "https://points.example.com/console/link/YwT4",
        ),
    ]


_new_members = Noun(CreatedMember, "member", "members", schema="CreatedMember")
_call = partial(call, group="Platform")
_NO_MEMBER = refusal(
    "NoSuchMember", "The organization has no such member, or there is no such organization.", NotFound("member", 2)
)


@_call(
    "POST /v1/platform/organizations/{id}/keys",
    "Make a key of an organization",
    scopes=(KEYS_WRITE,),
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
    makes_once=True,
    refuses=[NO_ORGANIZATION],
)
def create_key(
    who: PlatformCaller, connection: Connection, organization_id: int, new: Mapping[str, Any]
) -> dict[str, Any]:
    """The key is shown once and not stored."""
    api_key_id, text = api_keys.create(connection, organization_id, **new)
    made = CreatedKey(api_key_id, text, organization_id, new["name"], new["sandbox"], *new["bounds"])
    return new_keys.payload(made)


@_call(
    "GET /v1/platform/organizations/{id}/keys",
    "The keys of an organization, page by page",
    scopes=(ORGANIZATIONS_READ,),
    query="keys",
    answers=Answer(about="A page of the list.", data=api_keys.keys.page(), examples={"keys": {}}),
    refuses=[NO_ORGANIZATION, BAD_LIST_QUERY],
)
def list_keys(who: PlatformCaller, organization_id: int) -> Response:
    """Newest first, of both modes, revoked ones included. `next_cursor` leads to the next page and is null at the
    end.
    """
    require = partial(organizations.get_whole, organization_id=organization_id)
    rows = lists.keys
    return page_answer("keys", None, rows, api_keys.keys.payload, require=require, organization_id=organization_id)


@_call(
    "DELETE /v1/platform/organizations/{id}/keys/{key_id}",
    "Revoke a key of an organization",
    scopes=(KEYS_WRITE,),
    answers=Answer(status=204, about="It is revoked. There is no body."),
    refuses=[
        refusal("NoKey", "The organization has no such key, or there is no such organization.", NotFound("key", 4))
    ],
)
def revoke_key(who: PlatformCaller, organization_id: int, key_id: int) -> None:
    """At once and for good; again is the same answer."""
    with transaction(by=who.author) as connection:
        api_keys.revoke(connection, key_id, organization_id=organization_id)


@_call(
    "POST /v1/platform/organizations/{id}/members",
    "Make a member of an organization",
    scopes=(MEMBERS_WRITE,),
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
        data=_new_members.model,
        schema="NewMemberAnswer",
        examples={"member_made": {}},
    ),
    makes_once=True,
    refuses=[
        NO_ORGANIZATION,
        refusal(
            "OtherMember",
            "A member of the organization has the address; or the service does not know where people reach its console."
            " Nothing was written.",
            *(MemberConflict(), NoPublicUrl()),
            examples=["other_member", "no_public_url"],
        ),
    ],
)
def create_member(
    who: PlatformCaller, connection: Connection, organization_id: int, new: Mapping[str, Any]
) -> dict[str, Any]:
    """A person who may use the console. The link leads to the page where they choose a password; it is good once, for
    24 hours, and shown once.
    """
    member_id, token = links.add(connection, organization_id, **new, by=None)
    return _with_link(members.lock(connection, member_id), token)


@_call(
    "GET /v1/platform/organizations/{id}/members",
    "The members of an organization, page by page",
    scopes=(MEMBERS_READ,),
    query="members",
    answers=Answer(about="A page of the list.", data=members.members.page(), examples={"members": {}}),
    refuses=[NO_ORGANIZATION, BAD_LIST_QUERY],
)
def list_members(who: PlatformCaller, organization_id: int) -> Response:
    """Newest first, without those who were removed. `next_cursor` leads to the next page and is null at the end."""
    require = partial(organizations.get_whole, organization_id=organization_id)
    payload = members.members.payload
    return page_answer("members", None, lists.members, payload, require=require, organization_id=organization_id)


@_call(
    "DELETE /v1/platform/organizations/{id}/members/{member_id}",
    "Remove a member of an organization",
    scopes=(MEMBERS_WRITE,),
    answers=Answer(status=204, about="The member is removed. There is no body."),
    refuses=[_NO_MEMBER],
)
def remove_member(who: PlatformCaller, organization_id: int, member_id: int) -> None:
    """At once and for good, with every session; again is the same answer. What the member did stays in the log. The
    last admin may be removed too.
    """
    with transaction(by=who.author) as connection:
        members.remove_once(connection, member_id, organization_id=organization_id)


@_call(
    "POST /v1/platform/organizations/{id}/members/{member_id}/link",
    "Make a new link for a member",
    scopes=(MEMBERS_WRITE,),
    answers=Answer(status=201, about="The member, with the link.", data=_new_members.model, schema="NewMemberAnswer"),
    makes_once=True,
    refuses=[_NO_MEMBER, refusal("NoLink", NoPublicUrl.__doc__ or "", NoPublicUrl())],
)
def link_member(who: PlatformCaller, connection: Connection, organization_id: int, member_id: int) -> dict[str, Any]:
    """For who has lost the first one or forgotten the password: good once, for 24 hours. An earlier link ends; the
    password stays valid until another is chosen.
    """
    member = members.lock(connection, member_id, organization_id=organization_id)
    return _with_link(member, links.make_link(connection, member, by=None))


def _with_link(member: Member, token: str) -> dict[str, Any]:
    """What the platform gets of a member whose link was just made."""
    link = links.link_to(token, url=settings().public_url)
    of = (member.id, member.email, member.first_name, member.last_name, member.role)
    return _new_members.payload(CreatedMember(*of, link))


@_call(
    "GET /v1/platform/actions",
    "Who did what, page by page",
    scopes=(ORGANIZATIONS_READ,),
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
    by ids. What an organization's programs do is in the list of its requests.

    {pages}
    """
    return page_answer("actions", None, action_pages.page, actions.payload)
