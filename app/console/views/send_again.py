"""*Again*: a sent list as a new one, and a list of those that the balance did not pay."""

from collections.abc import Callable

from flask import Response, flash, redirect, url_for
from sqlalchemy import Connection
from werkzeug.wrappers import Response as AnyResponse

from app.console import checking, outcomes
from app.console.blueprints import needs, pages
from app.console.caller import calling_member
from app.console.checking_page import checked_page
from app.console.one_effect import form_id
from app.console.slow_work import Busy
from app.console.views.batches import get_batch
from app.console.views.outcome import batches_of
from app.console.views.send import as_sentence, get_list
from app.errors import NotFound, Refused
from app.members.members import SENDER
from app.postgres.database import transaction
from app.uploads import again
from app.uploads.again import NewList


@pages.post("/send/<token>/again")
@needs(SENDER)
def copy_list(token: str) -> AnyResponse:
    """Make a new list of a sent one."""

    def made(connection: Connection) -> NewList:
        upload = get_list(connection, token)
        if upload.sent_at is None:
            raise NotFound("sent list", token)
        return again.copy_of(connection, upload)

    return _made(made, or_back_to=url_for("console.outcome", token=token))


@pages.post("/send/<token>/unpaid")
@needs(SENDER)
def list_unpaid(token: str) -> AnyResponse:
    """Make a new list of those recipients of a sent one who were not paid."""
    return _made(lambda connection: _unpaid(connection, token), or_back_to=url_for("console.outcome", token=token))


@pages.get("/send/<token>/unpaid.csv")
def unpaid_file(token: str) -> Response:
    with transaction() as connection:
        return outcomes.of_new_list(_unpaid(connection, token))


@pages.post("/batches/<int:batch_id>/unpaid")
@needs(SENDER)
def list_unpaid_of_batch(batch_id: int) -> AnyResponse:
    """Make a new list of those recipients of a batch who were not paid."""

    def made(connection: Connection) -> NewList:
        batch = get_batch(connection, calling_member(connection), batch_id)
        return again.unpaid_of(connection, [batch], f"batch {batch_id}")

    return _made(made, or_back_to=url_for("console.show_batch", batch_id=batch_id))


def _unpaid(connection: Connection, token: str) -> NewList:
    upload = get_list(connection, token)
    return again.unpaid_of(connection, batches_of(connection, upload), upload.name)


def _made(make: Callable[[Connection], NewList], *, or_back_to: str) -> AnyResponse:
    """Keep a new list and go on to its check. The same form sent again leads to the same list."""
    with transaction() as connection:
        try:
            new = make(connection)
        except Refused as error:
            flash(error.sentence, "bad")
            return redirect(or_back_to, 303)
    token = form_id()
    try:
        return checked_page(checking.keep(*new, token=token), token)
    except (Busy, Refused) as error:
        flash(as_sentence(error.sentence), "bad")
        return redirect(or_back_to, 303)
