"""The lists that are read from a single table each, newest first; and the recipients of a batch, in request order."""

from sqlalchemy import Connection

from app import api_keys, request_log
from app.batches.recipients import Recipient, recipients_of
from app.members.members import members as members_noun
from app.organizations import refills as refill_noun
from app.organizations import whole
from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import Listing, by_id, read_page
from app.request_log import REQUESTS_KEPT_DAYS
from app.reversals import reversal
from app.users import SELECT_USERS, RegisteredUser, to_user
from app.webhooks import webhook
from app.webhooks.attempts import DELIVERIES_KEPT_DAYS


def _kept(days: int) -> str:
    """Word that a row is not past its time: such rows are hidden at once and deleted a little later."""
    return f"created_at >= (SELECT clock_timestamp()) - interval '{days} days'"


organizations = Listing(whole, is_by_time=False, scope=Filters.own_conditions)
members = Listing(
    members_noun, is_by_time=False, scope=lambda _: ["organization_id = :organization_id", "removed_at IS NULL"]
)
keys = Listing(api_keys.keys, is_by_time=False, scope=lambda _: ["organization_id = :organization_id"])
refills = Listing(refill_noun)
deliveries = Listing(
    webhook.deliveries,
    is_by_time=False,
    scope=lambda _: ["webhook_id = :webhook_id", _kept(DELIVERIES_KEPT_DAYS)],
)
requests = Listing(
    request_log.requests,
    scope=lambda filters: [*filters.scope_conditions(), _kept(REQUESTS_KEPT_DAYS)],
    matches=Filters.request_conditions,
)
reversals = Listing(reversal.reversals, scope=Filters.head_conditions, matches=Filters.batch_conditions)


def users(
    connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int
) -> Page[RegisteredUser]:
    """Return the users of a page, each with its balance at this moment."""
    conditions = filters.equal("email_key") + filters.own_conditions()
    # Of an address or an external id there is one user at most: with an order, PostgreSQL might read all of them.
    order = "" if conditions else " ORDER BY id DESC LIMIT :rows"
    if start is not None:
        conditions.append("id <= :start_id")
    statement = SELECT_USERS.format(
        condition=" AND ".join(conditions or ["true"]) + order,
        more=", row_number() OVER (ORDER BY f.id DESC) AS rows_read",
    )
    statement = f"{statement} ORDER BY f.id DESC"
    return read_page(connection, statement, filters, start, limit=limit, to_row=to_user, next_start=by_id)


def recipients(
    connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int
) -> Page[Recipient]:
    """Return a page of the recipients of the batch that the filters name."""
    assert filters.batch_id is not None, "the path names the batch"
    first, of = 0 if start is None else start.id, {"organization_id": filters.organization_id}
    rows = recipients_of(connection, filters.batch_id, **of, first=first, at_most=limit + 1)
    return Page(rows[:limit], CursorPosition(None, first + limit) if len(rows) > limit else None)
