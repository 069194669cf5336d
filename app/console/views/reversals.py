"""*Reversals*: the list, also as a file, and one reversal with what it took."""

from functools import partial

from flask import Response, render_template, request

from app.console.authors import authors_of
from app.console.blueprints import pages
from app.console.caller import calling_member
from app.console.found_files import found_file
from app.console.list_queries import asked_of
from app.console.search_forms import ReversalSearch
from app.pages import lists
from app.pages.filters import Page
from app.pages.queries import next_cursor
from app.postgres.database import transaction
from app.postgres.standby import long_read
from app.reversals import read as reversals
from app.reversals.read import ReversalRow
from app.values.ids import batch_and_position


@pages.get("/reversals")
def list_reversals() -> str:
    with transaction() as connection:
        who = calling_member(connection)
    form = ReversalSearch(request.args)
    asked = asked_of("reversals", who, form)
    page: Page[ReversalRow] = Page([], None)
    if not form.errors:
        page = long_read(partial(lists.reversals, filters=asked.filters, start=asked.start, limit=asked.limit))
    with transaction() as connection:
        authors = authors_of(connection, page.rows)
    return render_template(
        "console/reversals.html",
        reversals=page.rows,
        authors=authors,
        form=form,
        next_cursor=next_cursor("reversals", asked, page),
        asked=request.args,
    )


@pages.get("/reversals.csv")
def reversals_file() -> Response:
    return found_file("reversals", ReversalSearch(request.args))


@pages.get("/reversals/<int:reversal_id>")
def show_reversal(reversal_id: int) -> str:
    with transaction() as connection:
        who = calling_member(connection)
        found = reversals.get(connection, reversal_id, organization_id=who.organization.id, sandbox=who.sandbox)
        is_done = found.status == reversals.DONE
        entries = reversals.entries_of(connection, found.id, organization_id=found.organization_id) if is_done else []
        authors = authors_of(connection, [found])
    its_batches = {batch_and_position(entry.transaction_id)[0] for entry in entries}
    return render_template(
        "console/reversal.html",
        reversal=found,
        batch_id=found.batch_id or (its_batches.pop() if len(its_batches) == 1 else None),
        authors=authors,
        taken=sum(entry.code is None for entry in entries),
        left_alone=sum(entry.code is not None for entry in entries),
    )
