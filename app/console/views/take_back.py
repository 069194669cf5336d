"""What is done after the issue: taking back a batch or a part of it, the page of a reversal, and holding for longer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from flask import render_template, request
from sqlalchemy import Connection
from werkzeug.exceptions import NotFound as PageNotFound

from app.actions import log as actions
from app.api_keys import Caller
from app.batches import payloads
from app.batches.batch import Batch
from app.batches.transaction import HELD, transactions_of
from app.console.blueprints import Page, current_member, current_scope, current_zone, pages, to_page
from app.console.caller import act, authors_of, calling_member, form_id, record
from app.console.forms import amount_of, in_words, say_beside, say_of_form, say_why
from app.console.send_forms import MomentForm, TakeBackForm
from app.console.views.batches import TRANSACTIONS_SHOWN, get_batch
from app.errors import CannotExtend, IdempotencyKeyReused, InvalidRequest, NotFound, PointsError, Refused
from app.ledger.returns import NotLater, extend
from app.members.members import SENDER
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.pages import transaction_pages
from app.postgres import locks
from app.postgres.database import single_statement, snapshot, transaction
from app.reversals import accept as reversal_acceptance
from app.reversals.accept import AcceptedReversal
from app.reversals.request import Recoverable, ReverseReading, ReverseRequest, recoverable
from app.reversals.reversal import DONE, QUEUED, Reversal, addresses_asked, asked_of, entries_of, of_batches, reversals
from app.settings import settings
from app.values.ids import POSITIONS, batch_and_position
from app.values.numbers import counted
from app.values.timestamps import parse_timestamp
from app.values.zones import ZONE_OF_ALL, moment_in


@pages.get("/reversals/<int:reversal_id>")
def show_reversal(reversal_id: int) -> str:
    with snapshot() as connection:
        reversal = reversals.get(connection, reversal_id, current_scope())
        is_done, of = reversal.status == DONE, {"organization_id": reversal.organization_id}
        entries = entries_of(connection, reversal.id, **of) if is_done else []
        asked = asked_of(connection, [reversal.id], **of)[reversal.id]
        addresses = [] if is_done else addresses_asked(connection, reversal.id, **of, at_most=TRANSACTIONS_SHOWN)
        authors = authors_of(connection, [reversal])
    return render_template(
        "console/reversal.html",
        reversal=reversal,
        asked=asked,
        authors=authors,
        taken=sum(entry.code is None for entry in entries),
        left_alone=sum(entry.code is not None for entry in entries),
        entries=entries[:TRANSACTIONS_SHOWN],
        addresses=addresses,
    )


_CHOSEN = "The recipients or the points were changed since you looked"
_MOVED = "Points were claimed or given back since you looked"
_NOT_SEEN = "You have not seen these figures yet"
_LOOK = "Nothing was taken back: look at the figures above, then press the button again."
_USED = "This form has taken points back already. Look at the figures above before you take back more."
_NAMED = 5  # Who has taken points back meanwhile.
# Where the three parts of what a page showed meet.
_PARTS = "|"


class Choice(NamedTuple):
    """What to take back of a batch: from whom (positions from 0; none: from all), and how much from each."""

    positions: Sequence[int]
    amount: int | None

    def request(self, batch_id: int, reason: str, *, expected: int | None = None) -> ReverseRequest:
        """Return the request that a caller of the API would make.

        Raises:
            InvalidRequest: as for such a caller.
        """
        of = {"transactions": [batch_id * POSITIONS + position for position in self.positions]}
        fields: dict[str, Any] = of if self.positions else {"batch": batch_id}
        fields |= {"amount": self.amount, "reason": reason}
        fields["expect"] = None if expected is None else {"recoverable": expected}
        return ReverseReading(fields, settings()).request()

    def seen(self, batch: Batch, newest: Sequence[Reversal], figures: Recoverable) -> str:
        """Return a text that differs when the page would show something else: choice, newest reversal and figures."""
        states = (figures.held, figures.credited, figures.already_reversed, figures.not_debited, figures.queued)
        parts = (
            [batch.id, self.amount, *self.positions],
            [reversal.id for reversal in newest[:1]],
            [figures.recoverable, figures.held_points, *states],
        )
        return _PARTS.join(" ".join(map(str, part)) for part in parts)


@pages.form("/batches/<int:batch_id>/take-back", role=SENDER, asks=True)
def take_back(batch_id: int) -> Page:
    """Queue the reversal and redirect to its page. The same form sent again leads to the same reversal.

    The other buttons of the form show the figures of a choice, or more recipients to choose from.
    """
    form = TakeBackForm()
    if "show" in request.form:
        form.amount.validate(form)
        return _asking(batch_id, form)
    if not form.validate_on_submit():
        return _asking(batch_id, form), 400 if form.is_submitted() else 200
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
    """Accept the reversal of a form, if its page showed these figures; or return that which it made before.

    Until the commit nobody else accepts a reversal, so none is queued between the figures and this one; and the drain
    takes nothing if another sum than the page showed would come back.
    """
    who = calling_member(connection)
    batch = get_batch(connection, batch_id)
    locks.wait_for(connection, locks.Kind.REVERSALS, who.organization.id)
    choice, seen = _choice(batch, form), form.seen.data or ""
    expected = amount_of(seen.rpartition(_PARTS)[2].partition(" ")[0])
    reverse_request = choice.request(batch_id, form.reason.data, expected=expected)
    newest = of_batches(connection, [batch_id], who.scope, at_most=_NAMED)
    figures = recoverable(connection, reverse_request, who.organization, batch_status=batch.status)
    accepted = reversal_acceptance.accept(connection, who, reverse_request, f"console-{form_id()}")
    if not accepted.existed:
        now = choice.seen(batch, newest, figures)
        if seen != now:
            raise Refused(f"{_why_changed(connection, seen, now, newest)}. {_LOOK}")
        record(connection, actions.REVERSED, accepted.reversal_id, reverse_request.reason)
    return accepted


def _why_changed(connection: Connection, seen: str, now: str, newest: Sequence[Reversal]) -> str:
    """Say what has changed since the page was shown, and by whom."""
    if seen.count(_PARTS) != now.count(_PARTS):
        return _NOT_SEEN
    choice, last, _ = seen.split(_PARTS)
    if choice != now.partition(_PARTS)[0]:
        return _CHOSEN
    names = authors_of(connection, newest).members
    told = []
    for reversal in newest:
        if reversal.id > (amount_of(last) or 0):
            who = "the service" if reversal.is_return else names.get(reversal.member_id or 0, "the API")
            points = reversal.reversed_amount
            told.append(f"{who} (reversal {reversal.id}, {'not done' if points is None else counted(points, 'point')})")
    return f"Since you looked, points were taken back by {', '.join(told)}" if told else _MOVED


def _choice(batch: Batch, form: TakeBackForm) -> Choice:
    """Return the choice of a form, or of the link that leads to it."""
    chosen = {amount_of(text) or 0 for text in request.values.getlist("recipient")}
    if not all(1 <= number <= batch.recipient_count for number in chosen):
        raise PageNotFound
    return Choice(sorted(number - 1 for number in chosen), None if form.amount.errors else amount_of(form.amount.data))


def _asking(batch_id: int, form: TakeBackForm) -> str:
    with snapshot() as connection:
        who = calling_member(connection)
        batch = get_batch(connection, batch_id)
        choice = _choice(batch, form)
        figures = recoverable(connection, choice.request(batch_id, "-"), who.organization, batch_status=batch.status)
        newest = of_batches(connection, [batch_id], who.scope, at_most=1)
        first = _first_shown(choice)
        rows = transactions_of(
            connection, batch.id, first=first, organization_id=batch.organization_id, at_most=TRANSACTIONS_SHOWN
        )
    bodies = payloads.transaction_payloads((batch, row) for row in rows)
    form.seen.data = choice.seen(batch, newest, figures)
    positions_shown = range(first, first + TRANSACTIONS_SHOWN)
    return render_template(
        "console/take_back.html",
        batch=batch,
        figures=figures,
        form=form,
        choice=choice,
        elsewhere=[position for position in choice.positions if position not in positions_shown],
        rows=list(zip(positions_shown, (row.debited and row.points_left != 0 for row in rows), bodies, strict=False)),
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


@pages.form("/transactions/<int:transaction_id>/hold", role=SENDER, asks=True)
def hold_longer(transaction_id: int) -> Page:
    """Move the end of the hold, or say why it cannot be moved. The same form sent again changes nothing."""
    form = MomentForm()
    until = form.moment() if form.validate_on_submit() else None
    if until is None:
        return _asking_to_hold(transaction_id, form)

    def rule(connection: Connection, who: Caller) -> bool:
        return extend(connection, transaction_id, until, who.scope)

    try:
        act(actions.EXTENDED, transaction_id, rule, detail=f"until {moment_in(ZONE_OF_ALL, until)}")
    except NotLater:  # The page shows the end that it has, in the member's zone.
        say_beside(form.day, "The end must be later than it is.")
        return _asking_to_hold(transaction_id, form)
    except InvalidRequest as error:
        say_beside(form.day, in_words(error.faults["held_until"][0], "The end"))
        return _asking_to_hold(transaction_id, form)
    except CannotExtend as error:
        return _to_batch(transaction_id, error.sentence, "bad")
    return _to_batch(transaction_id, f"The points are held until {moment_in(current_zone(), until)}.")


def _asking_to_hold(transaction_id: int, form: MomentForm) -> Page:
    """Return the page of the form; with faults in it, as an answer to it."""
    with single_statement() as connection:
        row = transaction_pages.get(connection, transaction_id, current_scope())
    [body] = payloads.transaction_payloads([row])
    if body["state"] != HELD or body["held_until"] is None:
        says = "These points are not held, or held for ever: there is no end to move."
        return _to_batch(transaction_id, says, "bad")
    filled = form.or_at(parse_timestamp(body["held_until"]))
    page = render_template("console/hold_longer.html", transaction=body, form=filled)
    return (page, 400) if form.is_submitted() else page


def _to_batch(transaction_id: int, sentence: str, mood: str = "message") -> Page:
    return to_page("show_batch", sentence, mood, batch_id=batch_and_position(transaction_id)[0])
