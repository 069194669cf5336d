"""The three stages of a run that speak to the service: verify all of it, ask, send it part by part."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from app.cli.progress import progress_bar
from app.cli.send import words
from app.cli.send.recipients import Part, idempotency_key
from app.cli.send.refusals import RefusedRecipients, TooManyRecipients
from app.cli.send.results import NOT_ANSWERED, write_undebited
from app.cli.send.run import Run
from app.cli.send.service import GaveUp, Unanswered
from app.errors import PointsError, Refused
from app.local.interrupts import undisturbed


def verify(run: Run) -> None:
    """Verify every part before the first is sent, and learn how many recipients the service takes in one.

    Raises:
        PointsError: the organization may not issue, or the service refuses a recipient.
    """
    while True:
        try:
            with progress_bar("Verifying", total=run.recipients.count, err=run.err) as advance_to:
                for part in run.recipients.parts(run.size):
                    verdict = _verdict(run, part)
                    if verdict["code"] not in (None, "insufficient_balance"):
                        raise Refused(verdict["error"])
                    advance_to(part.number * run.size)
        except TooManyRecipients as error:
            run.size = error.limit if error.limit and error.limit < run.size else run.size // 2
            if run.size == 0:
                raise
        else:
            return


def ask(run: Run) -> None:
    """Show what would be sent and ask whether to.

    Raises:
        Refused: nobody has answered, or the whole cannot be paid although that was asked for.
        click.Abort: the person has said no.
    """
    unsettled = run.recipients.count - run.earlier.settled
    if not (run.choices.yes and run.choices.as_json):
        words.plan(
            run.out,
            intent=run.intent,
            recipients=run.recipients,
            organization=run.organization,
            settled=run.earlier.settled,
            parts=-(-run.recipients.count // run.size),
            column=run.column.heading,
        )
    if run.choices.atomic and unsettled * run.choices.amount > run.organization["balance"]:
        raise Refused(
            "Nothing was sent: the balance does not pay all of it. Refill, or omit --atomic to pay as many as it does."
        )
    if not run.choices.yes:
        run.out.print()
        if not _agrees(err=run.choices.as_json):
            raise click.Abort


def send(run: Run) -> None:
    """Send the parts in order; whatever ends it, the result file says how far it came."""
    try:
        run.results.begin(run.recipients.bad)
        with progress_bar("Sending", total=run.recipients.count, err=run.err) as advance_to:
            for part in run.recipients.parts(run.size):
                _send_part(run, part)
                advance_to(run.sent)
    except KeyboardInterrupt:
        run.stopped = "Interrupted. Give the same command again to carry on: nothing is paid twice."
    except GaveUp as error:
        run.stopped = f"{error.sentence} Give the same command again to carry on: nothing is paid twice."
    except Unanswered as error:
        run.stopped = (
            f"{error.sentence} The last batch may have been accepted all the same: its lines say “{NOT_ANSWERED}”."
        )
    except PointsError as error:
        run.stopped, run.part_under_way = error.sentence, None  # It was answered, with a refusal.
    except OSError as error:
        run.stopped = _unwritable(run, error)
    with undisturbed():
        unsent = (part for part in run.recipients.parts(run.size) if part.number > run.parts_sent)
        try:
            run.results.finish(unsent, run.intent, unanswered=run.part_under_way)
            if run.sent > run.totals.debited:
                run.undebited = write_undebited(run.results.path)
        except OSError as error:
            run.stopped = _unwritable(run, error)


def _unwritable(run: Run, error: OSError) -> str:
    """Say that what became of the lines cannot be written down; the service knows it all the same."""
    return (
        f"{run.results.path} cannot be written: {error.strerror}. Make room, and give the same command again to carry"
        " on: nothing is paid twice."
    )


def _send_part(run: Run, part: Part) -> None:
    """Send one part. Ctrl-C waits for its answer, because the service may have accepted it already."""
    try:
        _settle(run, part)
    except KeyboardInterrupt:
        if run.part_under_way is not None:
            run.service.hurry()
            run.err.print("Stopping once it is known what became of this batch; Ctrl-C stops at once.")
            _settle(run, part)
        raise


def _settle(run: Run, part: Part) -> None:
    """Have one part issued, or find out that it was, and write down what became of it."""
    key = idempotency_key(run.intent.campaign, part.number)
    run.part_under_way = part.number
    issued = run.service.send(run.choices.body(part), key)
    with undisturbed():
        run.results.write(part, issued, run.intent)
        run.totals.add(issued)
        run.parts_sent, run.sent = part.number, run.sent + len(part.emails)
        run.part_under_way = None


def _verdict(run: Run, part: Part) -> Mapping[str, Any]:
    try:
        return run.service.verify(run.choices.body(part))
    except RefusedRecipients as error:
        place, sentence = min(error.sentences.items())
        raise Refused(
            f"Nothing was sent: the service refuses line {part.lines[place]}: {sentence} Fix or remove that line."
        ) from None


def _agrees(*, err: bool) -> bool:
    """Ask a person, or whatever answers on standard input."""
    if sys.stdin is not None:  # It is None where its descriptor was closed.
        try:
            return click.confirm("Send?", err=err)
        except click.Abort:
            if sys.stdin.isatty():  # Ctrl-C or Ctrl-D.
                raise
            click.echo(err=err)  # The question's line has no end yet.
    raise Refused("Nothing was sent: there was no answer. Use --yes to send without being asked.")
