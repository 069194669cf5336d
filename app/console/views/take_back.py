"""Taking a batch back: the points that would come back, and the reason."""

from flask import redirect, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from app.console.blueprints import needs, pages
from app.console.caller import calling_member, record_action
from app.console.forms import say_beside
from app.console.one_effect import form_id
from app.console.send_forms import TakeBackForm
from app.console.views.batches import get_batch
from app.errors import InvalidRequest, NotFound, PointsError
from app.members import actions
from app.members.members import SENDER
from app.messaging.drains import Job, drains
from app.metrics.record import current_record
from app.postgres.database import transaction
from app.reversals import accept as reversal_acceptance
from app.reversals import read as reversals
from app.reversals.preview import recoverable
from app.reversals.request import ReverseReading, ReverseRequest
from app.settings import settings


@pages.get("/batches/<int:batch_id>/take-back")
@needs(SENDER)
def ask_to_take_back(batch_id: int) -> str:
    return _asking(batch_id, TakeBackForm(formdata=None))


@pages.post("/batches/<int:batch_id>/take-back")
@needs(SENDER)
def take_back(batch_id: int) -> AnyResponse | tuple[str, int]:
    """Queue the reversal and redirect to its page. The same form sent again leads to the same reversal."""
    form = TakeBackForm()
    if not form.validate():
        return _asking(batch_id, form), 400
    try:
        request = _request(batch_id, form.reason.data)
        with transaction() as connection:
            who = calling_member(connection)
            accepted = reversal_acceptance.accept(connection, who, request, f"console-{form_id()}")
            if not accepted.existed:
                record_action(
                    connection, actions.REVERSED, accepted.reversal_id, sandbox=who.sandbox, detail=request.reason
                )
    except NotFound:
        raise
    except InvalidRequest as error:
        for sentence in error.faults.get("reason", [error.sentence]):
            say_beside(form.reason, sentence)
        return _asking(batch_id, form), 400
    except PointsError as error:
        say_beside(form.reason, error.sentence)
        return _asking(batch_id, form), 409
    if accepted.status == reversals.QUEUED:
        drains.ask(Job(who.organization.id, None, None, current_record().trace_id))
    return redirect(url_for("console.show_reversal", reversal_id=accepted.reversal_id), 303)


def _request(batch_id: int, reason: str) -> ReverseRequest:
    return ReverseReading({"batch": batch_id, "reason": reason}, settings()).request()


def _asking(batch_id: int, form: TakeBackForm) -> str:
    with transaction() as connection:
        who = calling_member(connection)
        batch = get_batch(connection, who, batch_id)
        request = ReverseRequest(batch_id=batch.id, transaction_ids=None, amount=None, atomic=False, reason="-")
        found = recoverable(connection, request, who.organization, batch_status=batch.status)
    return render_template("console/take_back.html", batch=batch, found=found, form=form)
