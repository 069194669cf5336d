"""`GET /v1/organization`, `/v1/statement` and `/v1/requests`: the caller's organization, and what its keys called."""

from functools import partial
from typing import Annotated, Any

from flask import Response
from pydantic import BaseModel, Field, create_model

from app import organizations
from app.api.calls import Additions, Answer, call
from app.api.envelope import success
from app.api.listing import page_answer
from app.api.refusals import BAD_QUERY, bad_query
from app.api.requests.query import parse_statement_request, query
from app.api_keys import Caller
from app.batches import schedule
from app.batches.schedule import schedules
from app.noun_fields import says
from app.organizations import in_mode
from app.pages import lists
from app.postgres.database import snapshot
from app.postgres.standby import long_read
from app.request_log import requests
from app.settings import settings
from app.statement.read import lines, statement_of
from app.values.key_bounds import READ


class Limits(BaseModel):
    """The limits of a send; an operator may change them."""

    recipients: int = says("The most recipients.", 10_000, ge=1)
    amount: int = says("The most points for one recipient.", 1_000_000_000, ge=1, json_schema_extra={"format": "int64"})
    body_bytes: int = says("The most bytes of a body.", 8_388_608, ge=1)


class OrganizationAdditions(Additions):
    """The scheduled batches, and the limits of a send."""

    scheduled: schedules.model = says("The scheduled batches.")  # type: ignore[name-defined]
    limits: Limits = says("The limits of a send.")


Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$", json_schema_extra={"format": "date"})]
_Day = create_model(
    "StatementDay",
    __base__=lines.model,
    __doc__="One day in UTC. It opens as the day before closed.",
    date=(Day, says("The day.", "2026-01-31")),
)
_FIELDS: dict[str, Any] = {
    "from": (Day, says("The first day.", "2026-01-31")),
    "to": (Day, says("The last day.", "2026-01-31")),
    "days": (
        list[_Day],  # type: ignore[valid-type]
        says("Each day, in order, also those on which nothing moved the balance."),
    ),
    "total": (lines.model, says("All days together.")),
}
_Statement = create_model("Statement", __doc__="What moved the balance, day by day.", **_FIELDS)


@call(
    "GET /v1/organization",
    "The caller's own organization",
    group="Organization",
    scopes=(),
    answers=Answer(
        about="The organization.",
        data=in_mode.model,
        beside=OrganizationAdditions,
        schema="OwnOrganizationAnswer",
        examples={"organization": {}},
    ),
)
def show_organization(who: Caller) -> Response:
    """Shows the balance and the scheduled batches of the key's mode, and the limits of a send."""
    with snapshot() as connection:
        organization = organizations.get(connection, who.scope)
        scheduled = schedule.scheduled_of(connection, who.scope)
    limits = settings()
    return success(
        in_mode.payload(organization),
        scheduled=schedules.payload(scheduled),
        limits={
            "recipients": limits.recipients_max,
            "amount": limits.amount_max,
            "body_bytes": limits.body_bytes_max,
        },
    )


@call(
    "GET /v1/statement",
    "What moved the balance, day by day",
    group="Organization",
    scopes=(READ,),
    query="days of a statement",
    answers=Answer(about="The statement.", data=_Statement, examples={"statement": {}}),
    refuses=[
        bad_query(
            "BadPeriod",
            {
                "from": "The from parameter is required.",
                "to": "The to parameter must be a day of the calendar, such as 2026-01-31, but is “2026-02-30”.",
            },
        )
    ],
)
def show_statement(who: Caller) -> dict[str, Any]:
    """One row for each day in UTC, of the key's mode: the balance at its beginning, what was refilled, debited, taken
    back by callers (`reversed`) and returned because it was held too long, and the balance at its end, at which the
    next day opens. A batch counts on the day of its `issued_at`, a reversal on that of its `done_at`. A reset of the
    sandbox is a refill. Days on which nothing moved the balance are there too. It is exact, and as fast with a million
    batches as with none.
    """
    first, last = parse_statement_request(query())
    of = partial(statement_of, scope=who.scope, first=first, last=last)
    return long_read(of).payload(lines.payload)


@call(
    "GET /v1/requests",
    "The calls of the keys, page by page",
    group="Requests",
    scopes=(READ,),
    query="requests",
    answers=Answer(about="A page of the list.", data=requests.page("calls"), examples={"requests": {}}),
    refuses=[BAD_QUERY],
)
def list_requests(who: Caller) -> Response:
    """The calls that the organization's keys made in the key's mode in the last 30 days, ordered by when they arrived,
    each listed about a quarter of a second after its answer. Bodies, addresses and keys are not kept. To look for one
    call, give its `request_id`; to see what became of a batch, `batch`. Calls that a key has made beyond its rate
    limit, or after it was revoked, are listed in part. While the database is out of reach, calls are missing.

    {pages}
    """
    return page_answer("requests", who, lists.requests, requests.payload)
