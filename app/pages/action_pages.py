"""The pages of the log of actions: newest first, by the time, then by id."""

from datetime import datetime
from typing import Annotated, NamedTuple

from app.noun import Noun
from app.noun_fields import Id, Part, Shown, says, says_one_of
from app.pages.filters import Filters
from app.pages.statements import Listing
from app.scope import KINDS, MEMBER, OPERATOR, PLATFORM_KEY


class ActionRow(NamedTuple):
    """Who did what, and when."""

    id: Annotated[Id, says("The id of the action.", 12)]
    created_at: Annotated[
        datetime, says("When it was done. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    ]
    action: Annotated[str, says("What was done, in a word. Other words may come.", "balance.refilled")]
    by_type: Annotated[str, says_one_of(KINDS, "What kind of author it is.", "platform_key"), Shown(name="by.type")]
    by_id: Annotated[
        Id | None,
        says("The id of the member or the platform key; null for an operator.", 3),
        Shown(name="by.id"),
    ]
    by_name: Annotated[
        str,
        says("The name of the member or the key; for an operator that of the system user.", "Billing"),
        Shown(name="by.name"),
    ]
    organization_id: Annotated[Id, says("The id of the organization.", 1), Shown(name="organization.id")]
    organization_name: Annotated[str, says("Its name of now.", "Acme"), Shown(name="organization.name")]
    subject_id: Annotated[int | None, says("The id of what was made or changed; null if it is of several.", 3)]
    subject_name: str | None  # Of a member or a key.
    sandbox: Annotated[bool | None, says("The mode; null if it has none.", False)]
    detail: Annotated[str | None, says("What the id does not say, such as the points; null: nothing.", "1000")]


actions = Noun(
    ActionRow,
    "action",
    "actions",
    schema="Action",
    parts={
        "by": Part(
            "ActionAuthor",
            "Who did something.",
            "Who did it; null: somebody unknown, who gave a wrong password.",
            null_without="by_type",
        ),
        "organization": Part(
            "ActionOrganization",
            "The organization that an action concerns.",
            "Whose matter it is; null: nobody's, such as a user.",
            null_without="organization_id",
        ),
    },
)


def _scope(filters: Filters) -> list[str]:
    return [*filters.time_conditions(), *(["organization_id = :organization_id"] if filters.organization_id else ())]


# The actions of all organizations and of none, unless the filters name an organization.
page = Listing(
    actions,
    "*",
    scope=_scope,
    matches=Filters.action_conditions,
    around=f"""
        SELECT a.id, a.created_at, a.action,
               CASE WHEN a.member_id IS NOT NULL THEN '{MEMBER}'
                    WHEN a.platform_key_id IS NOT NULL THEN '{PLATFORM_KEY}'
                    WHEN a.operator IS NOT NULL THEN '{OPERATOR}' END,
               coalesce(a.member_id, a.platform_key_id),
               coalesce(trim(m.first_name || ' ' || m.last_name), p.name, a.operator),
               a.organization_id, o.name, a.subject_id,
               coalesce(trim(s.first_name || ' ' || s.last_name), k.name), a.sandbox, a.detail, a.rows_read
        FROM ({{}}) a
        LEFT JOIN organizations o ON o.id = a.organization_id
        LEFT JOIN members m ON m.id = a.member_id
        LEFT JOIN platform_keys p ON p.id = a.platform_key_id
        LEFT JOIN members s ON a.action LIKE 'member.%' AND s.id = a.subject_id
        LEFT JOIN api_keys k ON a.action LIKE 'key.%' AND k.id = a.subject_id
        ORDER BY a.created_at DESC, a.id DESC
    """,
)
