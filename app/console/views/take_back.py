"""Taking a batch back, or a part of it: the points that would come back, and the reason."""

from collections.abc import Sequence
from typing import NamedTuple

from flask import redirect, render_template, request, url_for
from sqlalchemy import Connection
from werkzeug.exceptions import NotFound as PageNotFound
from werkzeug.wrappers import Response as AnyResponse

from app.actions import log as actions
from app.batches import payloads
from app.batches import read as batches
from app.batches.read import BatchRow, TransactionRow
from app.console.blueprints import current_member, needs, pages
from app.console.caller import calling_member, record_action
from app.console.forms import amount_of, say_of_form, say_why
from app.console.one_effect import form_id
from app.console.send_forms import TakeBackForm
from app.console.views.batches import TRANSACTIONS_SHOWN, get_batch
from app.errors import IdempotencyKeyReused, InvalidRequest, NotFound, PointsError, Refused
from app.members.members import SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.postgres.database import transaction
from app.reversals import accept as reversal_acceptance
from app.reversals import read as reversals
from app.reversals.accept import AcceptedReversal
from app.reversals.request import Recoverable, ReverseReading, ReverseRequest, recoverable
from app.settings import settings
from app.values.ids import POSITIONS

# The page has shown other figures: the choice was changed, or points were taken back meanwhile.
_CHANGED = (
    "The choice or the points were changed since you looked: look at the figures above, then press the button again."
)
_NOT_SEEN = "You have not seen these figures yet: look at them above, then press the button again."
_USED = "This form has taken points back already. Look at the figures above before you take back more."

Page = AnyResponse | tuple[str, int] | str


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

    def seen(self, batch: BatchRow, found: Recoverable) -> str:
        """Return a text that is another one when the page would show something else."""
        states = (found.held, found.credited, found.already_reversed, found.not_debited)
        figures = (found.recoverable, found.held_points, *states)
        return " ".join(map(str, (batch.id, self.amount, *figures, "of", *self.positions)))


@pages.get("/batches/<int:batch_id>/take-back")
@needs(SENDER)
def ask_to_take_back(batch_id: int) -> Page:
    return _asking(batch_id, TakeBackForm(formdata=None))


@pages.post("/batches/<int:batch_id>/take-back")
@needs(SENDER)
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
    if accepted.status == reversals.QUEUED:
        drains.ask(Job(current_member().organization_id, None, None, current_record().trace_id))
    return redirect(url_for("console.show_reversal", reversal_id=accepted.reversal_id), 303)


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


def _choice(batch: BatchRow, form: TakeBackForm) -> Choice:
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
        rows = batches.transactions_of(
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
        rows=list(zip(shown, map(_has_points, rows), bodies, strict=False)),
        first=first,
        next=first + TRANSACTIONS_SHOWN if first + TRANSACTIONS_SHOWN < batch.recipient_count else None,
        previous=first - TRANSACTIONS_SHOWN if first else None,
    )


def _first_shown(choice: Choice) -> int:
    """Return the position of the first recipient of the page: that of a button, or of the first chosen ones."""
    asked = request.form.get("show", "")
    place = int(asked) if asked.isascii() and asked.isdigit() and len(asked) <= 6 else None
    if place is None:
        place = choice.positions[0] if choice.positions else 0
    return place - place % TRANSACTIONS_SHOWN


def _has_points(row: TransactionRow) -> bool:
    return row.debited and row.points_left != 0
