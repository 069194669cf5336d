"""The steps of a run: read the list, verify all of it, ask the person, and send it part by part.

Each request is on the disk before it is sent, and its rows soon after the answer.
"""

import fcntl
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from multiprocessing.pool import AsyncResult
from typing import BinaryIO

import click

from app.cli.answer import confirms
from app.cli.options import opened_list
from app.cli.send import output
from app.cli.send.earlier import require_no_second_payment
from app.cli.send.result_rows import Request
from app.cli.send.run import Choices, Run
from app.cli.service import FaultyBody, NeverIssued, NoAnswer, Service, in_order
from app.cli.tables import progress_bar
from app.errors import PointsError, Refused
from app.local.terminal import interrupts_delayed
from app.recipient_files.checking import AmountsMissing, Reading
from app.recipient_files.columns import Chosen
from app.recipient_files.list_file import ColumnUnclear
from app.recipient_files.recipients import Part
from app.recipient_files.text import ListText
from points_client import Sent, Verified

_CONCURRENT_CALLS = 2
_CARRY_ON = "give the same command again to carry on: nothing is paid twice."


@contextmanager
def prepared(choices: Choices) -> Iterator[Run]:
    """Read the list and have the service verify all of it; nothing is sent.

    Raises:
        PointsError: the list has nothing to send, or cannot be sent.
    """
    if choices.result_path.resolve() == choices.file.resolve():
        raise Refused("The result would replace the file itself: choose another --result FILE.")
    if choices.result_path.is_dir():
        raise Refused(f"{choices.result_path} is a folder. Choose another --result FILE.")
    if choices.result_path.is_symlink() and not choices.result_path.exists():
        raise Refused(
            f"{choices.result_path} is a link to a file that is not there, so `points send` cannot tell who was paid:"
            " bring that file back; or, if nobody in the list was paid before, remove the link."
        )
    with ExitStack() as stack:
        raw = stack.enter_context(choices.file.open("rb"))
        _lock(raw, choices)
        text = stack.enter_context(opened_list(raw, choices.file.name, choices.sheet, choices.hidden_rows))
        reading = stack.enter_context(closing(_reading(choices, text)))
        service = Service(choices.url, choices.key, patience_s=choices.patience)
        stack.enter_context(closing(service))
        run = Run(choices, reading, service)
        file, recipients = run.list, run.recipients
        with progress_bar(f"Reading {file.name}", total=file.size_bytes) as advance_to:
            _verify(run, reading.parts(run.limits.amount, run.size, advance_to))
        output.bad_lines(choices, recipients)
        if not recipients.count:
            raise Refused(f"{file.name} holds no e-mail address to send to in {file.title(run.columns.address)}.")
        run.campaign = recipients.campaign(amount=choices.amount, label=choices.label, again=choices.again)
        require_no_second_payment(run)
        _require_allowed(run)
        yield run


def _verify(run: Run, parts: Iterator[Part]) -> None:
    """Verify every part while the next is read; find out how many recipients fit into a body.

    Raises:
        PointsError: the service refuses the key or a recipient.
    """
    run.refusals.clear()
    calls = ((part, partial(run.service.verify, run.body(part))) for part in parts)
    try:
        for part, outcome in in_order(calls, at_most=_CONCURRENT_CALLS):
            _note_refusal(run, part, outcome)
    except FaultyBody as error:
        if not error.is_too_large or run.size == 1:
            raise
        run.size //= 2
        deque(parts, maxlen=0)  # Read the rest of the list.
        _verify(run, run.recipients.parts(run.size))


def _note_refusal(run: Run, part: Part, outcome: AsyncResult[Verified]) -> None:
    try:
        verdict = outcome.get()
    except FaultyBody as error:
        if not error.places:
            raise
        place, sentence = min(error.places.items())
        raise Refused(
            f"Nothing was sent: the service refuses line {part.lines[place]}: {sentence} Fix or remove that line."
        ) from None
    if verdict.code not in (None, "insufficient_balance"):
        run.refusals[part.number] = verdict.error or ""


def _require_allowed(run: Run) -> None:
    """Raise if a part may not be sent now. What was sent before is only replayed, whatever holds for new batches."""
    if run.results.unanswered:
        return  # It may be what uses up the limit: what became of it is found out first.
    for number, sentence in run.refusals.items():
        if run.key(number) not in run.keys_before:
            raise Refused(sentence)


def ask(run: Run) -> None:
    """Show the plan and ask whether to send.

    Raises:
        Refused: the answer was no or did not come, or --atomic is given and the balance cannot pay all.
    """
    if not (run.choices.yes and run.choices.as_json):
        output.plan(run)
    # What is not answered may be paid already, out of this balance.
    if run.choices.atomic and not run.results.unanswered and run.cost > run.organization.balance:
        raise Refused(
            "Nothing was sent: the balance does not pay all of it. Refill, or omit --atomic to pay as many as it does."
        )
    if not (run.choices.yes or confirms("Send?", nothing_done="Nothing was sent", how="send", err=run.choices.as_json)):
        raise Refused("Nothing was sent.")


def _reading(choices: Choices, text: ListText) -> Reading:
    chosen = Chosen(choices.amount_column, choices.reference_column, choices.label_column)
    try:
        return Reading(text, column=choices.column, chosen=chosen, has_amount=choices.amount is not None)
    except ColumnUnclear as error:
        raise Refused(f"{error.sentence} Choose one with --column, by heading or number.") from None
    except AmountsMissing as error:
        or_choose = f" {error.figures}: choose with --amount-column." if error.figures else ""
        what = f"{text.name} has no column “amount” or “points”: give the points of each recipient with --amount."
        raise click.UsageError(what + or_choose) from None


def _lock(raw: BinaryIO, choices: Choices) -> None:
    """Prevent another run of the same list until this run ends."""
    try:
        fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused("Another run sends this file at this moment; wait until it has ended.") from None
    except OSError as error:
        raise Refused(
            f"{choices.file.name} cannot be locked where it is, as on some network folders ({error.strerror})."
            f" Copy it to a local folder, and send the copy with --result {choices.result_path}, so that what was"
            " sent before is still known."
        ) from None


def send(run: Run) -> None:
    """Send the parts in order. However it ends, the result file tells how far it came."""
    try:
        if run.results.unanswered:
            _resend_unanswered(run)
            require_no_second_payment(run)
            run.totals.clear()
        _send_parts(run)
        if run.unpaid:
            run.undebited = run.results.write_unpaid(run.campaign, list(run.columns.own), run.erased)
    except KeyboardInterrupt:
        if run.results.unanswered:
            click.echo("Stopping once the outcome of the last batches is known; Ctrl-C stops at once.", err=True)
            with suppress(KeyboardInterrupt, PointsError, OSError):
                _resend_unanswered(run)
        # Sent whole, it may still lack the list of the unpaid.
        if run.totals["sent"] < run.recipients.count or (run.unpaid and run.undebited is None):
            run.stopped = f"Interrupted: {_CARRY_ON}"
    except NoAnswer as error:
        run.stopped = f"{error.sentence} Later, {_CARRY_ON}"
    except PointsError as error:
        run.stopped = error.sentence
        with suppress(PointsError, OSError):  # Another part may have been on its way.
            _resend_unanswered(run)
    except OSError as error:
        run.stopped = f"{run.results.path} cannot be written: {error.strerror}. Make room, and {_CARRY_ON}"


def _send_parts(run: Run) -> None:
    # One at a time if the balance cannot pay them all: the first lines come first.
    at_most = _CONCURRENT_CALLS if run.cost <= run.organization.balance else 1
    with progress_bar("Sending", total=run.recipients.count) as advance_to:
        for request, outcome in in_order(_announced(run), at_most=at_most):
            try:
                issued = outcome.get()
            except NoAnswer:
                raise
            except PointsError:
                run.results.withdraw(request)
                raise
            _write(run, request, issued)
            advance_to(run.totals["sent"])


def _announced(run: Run) -> Iterator[tuple[Request, Callable[[], Sent]]]:
    """Yield each part's request and call; the request is announced on the disk first."""
    for request in map(run.request, run.recipients.parts(run.size)):
        with interrupts_delayed():
            run.results.announce(request)
        yield request, partial(run.service.send, request.body, request.key)


def _resend_unanswered(run: Run) -> None:
    """Send the unanswered requests again, under their keys. One that can never be issued is forgotten.

    Raises:
        NeverIssued: it is one of this campaign.
    """
    for request in list(run.results.unanswered):
        try:
            _write(run, request, run.service.send(request.body, request.key))
        except NeverIssued as error:
            run.results.withdraw(request)
            if run.is_of_this_campaign(request.key):
                raise
            click.echo(f"A list that was sent before: {error.says.partition('. ')[0]}.", err=True)


def _write(run: Run, request: Request, issued: Sent) -> None:
    with interrupts_delayed():
        run.results.write(request, issued)
        if run.is_of_this_campaign(request.key):
            run.add(issued)
