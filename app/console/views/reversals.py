"""*Reversals*: the list, one reversal with what it took; and taking back a batch, or a part of it."""

from collections.abc import Sequence
from typing import NamedTuple

from flask import Response, render_template, request
from sqlalchemy import Connection
from werkzeug.exceptions import NotFound as PageNotFound

from app.actions import log as actions
from app.batches import payloads
from app.batches.batch import Batch
from app.batches.transaction import transactions_of
from app.console.blueprints import Page, current_member, pages, to_page
from app.console.caller import authors_of, calling_member, form_id, member_now, record_action
from app.console.forms import amount_of, say_of_form, say_why
from app.console.searching import ReversalSearch, found_file, listed
from app.console.send_forms import TakeBackForm
from app.console.views.batches import TRANSACTIONS_SHOWN, get_batch
from app.errors import IdempotencyKeyReused, InvalidRequest, NotFound, PointsError, Refused
from app.members.members import SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.pages import lists
from app.postgres.database import transaction
from app.reversals import accept as reversal_acceptance
from app.reversals.accept import AcceptedReversal
from app.reversals.request import Recoverable, ReverseReading, ReverseRequest, recoverable
from app.reversals.reversal import DONE, QUEUED, entries_of, reversals
from app.settings import settings
from app.values.ids import POSITIONS, batch_and_position


@pages.get("/reversals")
def list_reversals() -> str:
    rows, names = listed("reversals", member_now(), ReversalSearch(request.args), lists.reversals)
    with transaction() as connection:
        authors = authors_of(connection, rows)
    return render_template("console/reversals.html", reversals=rows, authors=authors, **names)


@pages.get("/reversals.csv")
def reversals_file() -> Response:
    return found_file("reversals", ReversalSearch(request.args))


@pages.get("/reversals/<int:reversal_id>")
def show_reversal(reversal_id: int) -> str:
    with transaction() as connection:
        found = reversals.get(connection, reversal_id, calling_member(connection).scope)
        is_done = found.status == DONE
        entries = entries_of(connection, found.id, organization_id=found.organization_id) if is_done else []
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


# The page has shown other figures: the choice was changed, or points were taken back meanwhile.
_CHANGED = (
    "The choice or the points were changed since you looked: look at the figures above, then press the button again."
)
_NOT_SEEN = "You have not seen these figures yet: look at them above, then press the button again."
_USED = "This form has taken points back already. Look at the figures above before you take back more."


class Choice(NamedTuple):
    """What to take back of a batch: from whom (positions from 0; none: from all), and how much from each."""

    positions: Sequence[int]
    amount: int | None

    def request(self, batch_id: int, reason: str) -> ReverseRequest:
        """Return the request that a caller of the API would make.

        Raises:
            InvalidRequest: as for such a caller.
        """
        of = {"transactions": [batch_id * POSITIONS + one for one in self.positions]}
        fields = (of if self.positions else {"batch": batch_id}) | {"amount": self.amount, "reason": reason}
        return ReverseReading(fields, settings()).request()

    def seen(self, batch: Batch, found: Recoverable) -> str:
        """Return a text that is another one when the page would show something else."""
        states = (found.held, found.credited, found.already_reversed, found.not_debited)
        figures = (found.recoverable, found.held_points, *states)
        return " ".join(map(str, (batch.id, self.amount, *figures, "of", *self.positions)))


@pages.get("/batches/<int:batch_id>/take-back", role=SENDER)
def ask_to_take_back(batch_id: int) -> Page:
    return _asking(batch_id, TakeBackForm(formdata=None))


@pages.post("/batches/<int:batch_id>/take-back", role=SENDER)
def take_back(batch_id: int) -> Page:
    """Queue the reversal and redirect to its page. The same form sent again leads to the same reversal.

    The other buttons of the form show the figures of a choice, or more recipients to choose from.
    """
    form = TakeBackForm()
    if "show" in request.form:
        form.amount.validate(form)
        return _asking(batch_id, form)
    if not form.validate():
        return _asking(batch_id, form), 400
    try:
        with transaction() as connection:
            accepted = _accept(connection, batch_id, form)
    except NotFound:
        raise
    except IdempotencyKeyReused:
        say_of_form(form, _USED)
        return _asking(batch_id, form), 409
    except PointsError as error:
        say_why(form, error)
        return _asking(batch_id, form), 400 if isinstance(error, InvalidRequest) else 409
    if accepted.status == QUEUED:
        drains.ask(Job(current_member().organization_id, None, None, current_record().trace_id))
    return to_page("show_reversal", reversal_id=accepted.reversal_id)


def _accept(connection: Connection, batch_id: int, form: TakeBackForm) -> AcceptedReversal:
    """Accept the reversal of a form, if its page has shown these figures; or return the one that it made before."""
    who = calling_member(connection)
    batch = get_batch(connection, who, batch_id)
    choice = _choice(batch, form)
    asked = choice.request(batch_id, form.reason.data)
    accepted = reversal_acceptance.accept(connection, who, asked, f"console-{form_id()}")
    if not accepted.existed:
        found = recoverable(connection, asked, who.organization, batch_status=batch.status)
        if form.seen.data != choice.seen(batch, found):
            raise Refused(_CHANGED if form.seen.data else _NOT_SEEN)
        record_action(connection, actions.REVERSED, accepted.reversal_id, sandbox=who.sandbox, detail=asked.reason)
    return accepted


def _choice(batch: Batch, form: TakeBackForm) -> Choice:
    """Return the choice of a form, or of the link that leads to it."""
    chosen = {amount_of(text) or 0 for text in request.values.getlist("recipient")}
    if not all(1 <= number <= batch.recipient_count for number in chosen):
        raise PageNotFound
    return Choice(sorted(number - 1 for number in chosen), None if form.amount.errors else amount_of(form.amount.data))


def _asking(batch_id: int, form: TakeBackForm) -> str:
    with transaction() as connection:
        who = calling_member(connection)
        batch = get_batch(connection, who, batch_id)
        choice = _choice(batch, form)
        found = recoverable(connection, choice.request(batch_id, "-"), who.organization, batch_status=batch.status)
        first = _first_shown(choice)
        rows = transactions_of(
            connection, batch.id, first=first, organization_id=batch.organization_id, at_most=TRANSACTIONS_SHOWN
        )
    bodies = payloads.transaction_payloads((batch, row) for row in rows)
    form.seen.data = choice.seen(batch, found)
    shown = range(first, first + TRANSACTIONS_SHOWN)
    return render_template(
        "console/take_back.html",
        batch=batch,
        found=found,
        form=form,
        choice=choice,
        elsewhere=[position for position in choice.positions if position not in shown],
        rows=list(zip(shown, (row.debited and row.points_left != 0 for row in rows), bodies, strict=False)),
        first=first,
        next=first + TRANSACTIONS_SHOWN if first + TRANSACTIONS_SHOWN < batch.recipient_count else None,
        previous=first - TRANSACTIONS_SHOWN if first else None,
    )


def _first_shown(choice: Choice) -> int:
    """Return the position of the first recipient of the page: that of a button, or of the first chosen ones."""
    place = amount_of(request.form.get("show"), digits_max=6)
    if place is None:
        place = choice.positions[0] if choice.positions else 0
    return place - place % TRANSACTIONS_SHOWN
