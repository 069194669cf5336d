"""Checks the results of earlier runs of a list, so that nobody is paid twice."""

from datetime import UTC, datetime, timedelta

from app.cli.send.result_rows import address_of, text_of, word
from app.cli.send.run import Run
from app.errors import Refused
from app.values.addresses import parse

# The service keeps an idempotency key for 30 days at least; after that it may pay again.
_REMEMBERED = timedelta(days=30)


def require_no_second_payment(run: Run) -> None:
    """Refuse a run that would pay a recipient twice unnoticed by the service; count the recipients sent before.

    Another campaign with this amount and label counts whole, also the recipients that its balance did not pay: they
    may have been paid since, from the list of unpaid. With --again, only campaigns of the same name count.

    Raises:
        Refused: the list has changed since it was sent, or was sent too long ago; or the result file is unreliable.
    """
    payer = (str(run.organization["id"]), word(run.choices.sandbox))
    payment, again = (*payer, str(run.amount), text_of(run.choices.label or "")), run.choices.again
    name, others, run.before, sent_at = run.choices.file.name, 0, 0, datetime.now(UTC).isoformat()
    for row in run.results.rows():
        if (row["organization_id"], row["sandbox"], row["amount"], row["label"]) != payment:
            continue
        if run.is_of_this_campaign(row["idempotency_key"]):
            run.before, sent_at = run.before + 1, min(sent_at, row["created_at"])
        elif again is None or row["again"] == text_of(again):
            others += run.recipients.holds(parse(address_of(row)).key)
    for request in run.results.unanswered:
        if (str(request.organization_id), word(request.sandbox)) != payer or _is_old(request.announced_at):
            raise Refused(
                f"A run of {request.announced_at[:10]} with a key of organization {request.organization_id}"
                f"{' for the sandbox' if request.sandbox else ''} was cut off. Give it again with that key, within 30"
                f"days. If you cannot, find out what became of it, then remove {run.results.path_of(request).name}."
            )
    way_out = f"name a new campaign with {'' if again is None else 'another '}--again NAME"
    if _is_old(sent_at):
        raise Refused(
            f"{name} was sent on {sent_at[:10]}, and the service remembers that for 30 days only: it would pay again."
            f" If that is what you want, {way_out}."
        )
    if others:
        raise Refused(
            f"{name} has changed since {run.results.path.name} was written, and {others} of its recipients were paid"
            " then with this amount and label, or may have been: they would be paid again. Send the new lines from"
            f" their own file; or, to pay everybody, {way_out}."
        )


def _is_old(moment: str) -> bool:
    return datetime.now(UTC) - datetime.fromisoformat(moment) > _REMEMBERED
