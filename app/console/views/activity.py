"""*Activity*: who did what, and when, with the page of each; its search, and all of it as a file."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from flask import Response, url_for
from sqlalchemy import Connection

from app.actions import log as actions
from app.actions.log import ABOUT
from app.console import files
from app.console.blueprints import LIVE, SANDBOX, current_member, current_zone, pages
from app.console.caller import calling_member
from app.console.slow_work import searches
from app.console.views.searches import Search, days_of, far, one_of, page_request_of, show_search
from app.errors import InvalidRequest
from app.members.members import ADMIN, VIEWER
from app.pages import action_pages
from app.pages.action_pages import ActionRow
from app.pages.action_words import sentence_of, who
from app.pages.filters import Filters
from app.postgres.database import single_statement
from app.postgres.standby import long_read
from app.values.texts import as_sentence
from app.values.timestamps import timestamp
from app.values.zones import moment_in

HEADING = ("time", "who", "what", "mode")


def lines_of(rows: Sequence[ActionRow]) -> dict[str, Any]:
    """Return what the page shows of these actions."""
    return {"rows": [(action, as_sentence(who(action)), sentence_of(action), _path_of(action)) for action in rows]}


def file_lines(rows: Sequence[ActionRow]) -> Iterator[Sequence[str]]:
    """Yield what a file has of these actions, under `HEADING`."""
    for action in rows:
        mode = {None: "", True: SANDBOX, False: LIVE}[action.sandbox]
        yield timestamp(action.created_at), as_sentence(who(action)), sentence_of(action), mode


def latest(connection: Connection, about: str, subject_id: int) -> str:
    """Return who has last done what to something, as a sentence, so that a form that is stale can say it.

    It is empty if none of the organization's newest actions was that. `about` is how the action's word begins.
    """
    of = current_member().organization_id
    filters = Filters(organization_id=of, sandbox=False, about=about, equals={"subject_id": subject_id})
    rows = action_pages.page(connection, filters, start=None, limit=1).rows
    said = [f"{moment_in(current_zone(), row.created_at)}, {who(row)}: {sentence_of(row)}." for row in rows]
    return "".join(said).replace("..", ".")


class _Page(NamedTuple):
    """The page of what an action has changed, the name of its id there, and the lowest role that sees it."""

    endpoint: str
    id_name: str | None = None
    role: str = ADMIN


# Members and webhooks may be gone, so their lists are the pages.
_OF_MEMBERS = (actions.MEMBER_ADDED, actions.MEMBER_REMOVED, actions.ROLE_CHANGED, actions.LINK_MADE)
_OF_BATCHES = (actions.SENT, actions.MOVED, actions.CANCELLED, actions.APPROVED, actions.REJECTED)
_PAGES = {
    **dict.fromkeys((*_OF_MEMBERS, actions.SESSIONS_ENDED, actions.SECOND_FACTOR_OFF), _Page("members")),
    **dict.fromkeys(_OF_BATCHES, _Page("show_batch", "batch_id", VIEWER)),
    **dict.fromkeys((actions.KEY_MADE, actions.KEY_REVOKED), _Page("keys")),
    **dict.fromkeys((actions.WEBHOOK_MADE, actions.WEBHOOK_CHANGED), _Page("webhooks")),
    **dict.fromkeys((actions.CLOCK_SET, actions.SANDBOX_RESET), _Page("sandbox")),
    actions.REVERSED: _Page("show_reversal", "reversal_id", VIEWER),
    actions.ORGANIZATION_CHANGED: _Page("settings"),
}


def _path_of(action: ActionRow) -> str | None:
    """Return the path of the page of what was changed, in its mode; None if there is none for this member."""
    page = _PAGES.get(action.action)
    if page is None or not current_member().may(page.role):
        return None
    values: dict[str, Any] = {} if page.id_name is None else {page.id_name: action.subject_id}
    if action.sandbox is not None:
        values["mode"] = SANDBOX if action.sandbox else LIVE
    return url_for(f"console.{page.endpoint}", **values)


_FIELDS = {"by": one_of("By"), "about": one_of("About", ABOUT), **days_of("Done")}
_SEARCH = Search("actions", _FIELDS, far(action_pages.page), context_of=lines_of)
pages.get("/activity", endpoint="list_activity")(partial(show_search, "activity", _SEARCH))

# The rows of a file that are read at a time, and in all.
_ROWS_READ, _LINES_MAX = 1_000, 100_000


@pages.get("/activity.csv")
def activity_file() -> Response:
    """Answer with the newest actions that match what a form asks for, each piece read in a turn of its own.

    Raises:
        InvalidRequest: a filter is wrong.
    """
    form = _SEARCH.form({})
    with single_statement() as connection:
        page_request = page_request_of(_SEARCH, calling_member(connection), form)
    if form.errors:
        raise InvalidRequest(form.errors)

    def lines() -> Iterator[Sequence[str]]:
        start = page_request.start
        for _ in range(_LINES_MAX // _ROWS_READ):
            with searches.turn_of_many():
                read = partial(_SEARCH.page_of, filters=page_request.filters, start=start, limit=_ROWS_READ)
                page = long_read(read)
            yield from file_lines(page.rows)
            start = page.next
            if start is None:
                return

    return files.file(files.CSV, "activity", HEADING, lines(), lines=_LINES_MAX)
