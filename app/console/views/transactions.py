"""*Transactions*, with a search, its sums and its file; *Held*, the held ones, and holding one for longer."""

from functools import partial

from flask import Response, render_template, request
from sqlalchemy import Connection
from wtforms import Form

from app.actions import log as actions
from app.api_keys import Caller
from app.batches import payloads
from app.batches.transaction import HELD
from app.console.blueprints import Page, current_zone, pages, to_page
from app.console.caller import act, calling_member, member_now
from app.console.forms import in_words, say_beside
from app.console.searching import HeldSearch, TransactionSearch, found_file, listed
from app.console.send_forms import MomentForm
from app.errors import CannotExtend, InvalidRequest
from app.ledger.returns import NotLater, extend
from app.members import members
from app.members.members import SENDER
from app.pages import transaction_pages
from app.postgres.database import transaction
from app.values.ids import batch_and_position
from app.values.timestamps import parse_timestamp
from app.values.zones import ZONE_OF_ALL, moment_in


@pages.get("/transactions")
def list_transactions() -> str:
    with transaction() as connection:
        who = calling_member(connection)
        senders = members.find_all(connection, who.organization.id)
    return _listed("console/transactions.html", who, TransactionSearch(request.args, senders), {})


@pages.get("/held")
def held() -> str:
    return _listed("console/held.html", member_now(), HeldSearch(request.args), {"state": HELD})


@pages.get("/transactions.csv")
def transactions_file() -> Response:
    return found_file("transactions", TransactionSearch(request.args, []))


@pages.get("/held.csv")
def held_file() -> Response:
    return found_file("transactions", HeldSearch(request.args), {"state": HELD})


def _listed(template: str, who: Caller, form: Form, fixed: dict[str, str]) -> str:
    page_of = partial(transaction_pages.page, is_far=True)
    found, names = listed("transactions", who, form, page_of, transaction_pages.totals, fixed)
    rows = list(zip((batch for batch, _ in found), payloads.transaction_payloads(found), strict=True))
    return render_template(template, rows=rows, **names)


@pages.get("/transactions/<int:transaction_id>/hold", role=SENDER)
def ask_to_hold(transaction_id: int) -> Page:
    return _asking(transaction_id, None)


@pages.post("/transactions/<int:transaction_id>/hold", role=SENDER)
def hold_longer(transaction_id: int) -> Page:
    """Move the end of the hold, or say why it cannot be moved. The same form sent again changes nothing."""
    form = MomentForm()
    until = form.moment() if form.validate() else None
    if until is None:
        return _asking(transaction_id, form)

    def rule(connection: Connection, who: Caller) -> bool:
        return extend(connection, transaction_id, until, **who.scope._asdict())

    try:
        act(actions.EXTENDED, transaction_id, rule, detail=f"until {moment_in(ZONE_OF_ALL, until)}")
    except NotLater:  # The page shows the end that it has, in the member's zone.
        say_beside(form.day, "The end must be later than it is.")
        return _asking(transaction_id, form)
    except InvalidRequest as error:
        say_beside(form.day, in_words(error.faults["held_until"][0], "The end"))
        return _asking(transaction_id, form)
    except CannotExtend as error:
        return _to_batch(transaction_id, error.sentence, "bad")
    return _to_batch(transaction_id, f"The points are held until {moment_in(current_zone(), until)}.")


def _asking(transaction_id: int, form: MomentForm | None) -> Page:
    """Return the page of the form; with faults in it, as an answer to it."""
    with transaction() as connection:
        row = transaction_pages.get(connection, transaction_id, **calling_member(connection).scope._asdict())
    [found] = payloads.transaction_payloads([row])
    if found["state"] != HELD or found["held_until"] is None:
        says = "These points are not held, or held for ever: there is no end to move."
        return _to_batch(transaction_id, says, "bad")
    page = render_template(
        "console/hold_longer.html", found=found, form=form or MomentForm.at(parse_timestamp(found["held_until"]))
    )
    return page if form is None else (page, 400)


def _to_batch(transaction_id: int, sentence: str, mood: str = "message") -> Page:
    return to_page("show_batch", sentence, mood, batch_id=batch_and_position(transaction_id)[0])
