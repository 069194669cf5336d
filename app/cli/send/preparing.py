"""What comes before the first part is sent: read the list, verify all of it, ask the person."""

import fcntl
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any, BinaryIO

import click

from app.cli.progress import progress_bar
from app.cli.send import words
from app.cli.send.earlier import require_no_second_payment
from app.cli.send.in_order import in_order
from app.cli.send.recipients import Part, Recipients
from app.cli.send.run import AMOUNT, Choices, Run
from app.cli.send.service import FaultyBody, Service
from app.errors import Refused
from app.lists import ListFile

_AT_ONCE = 2


@contextmanager
def prepared(choices: Choices) -> Iterator[Run]:
    """Read the list and have the service verify all of it; nothing is sent.

    Raises:
        PointsError: there is nothing to send, or it cannot be sent.
    """
    if choices.result_path.resolve() == choices.file.resolve():
        raise Refused("The result would replace the file itself: choose another --result FILE.")
    if choices.result_path.is_dir():
        raise Refused(f"{choices.result_path} is a folder. Choose another --result FILE.")
    with ExitStack() as stack:
        raw = stack.enter_context(choices.file.open("rb"))
        _lock(raw, choices)
        file = ListFile(raw, choices.file.name, column=choices.column)
        amount, column = _amount(choices, file), file.address_column()
        service = Service(choices.url, choices.key, patience_s=choices.patience, say=words.say)
        stack.enter_context(closing(service))
        recipients = stack.enter_context(closing(Recipients()))
        run = Run(choices, file, amount, recipients, column, service)
        with progress_bar(f"Reading {file.name}", total=choices.file.stat().st_size) as advance_to:
            _verify(run, recipients.read(file, column, run.size, advance_to))
        words.bad_lines(choices, recipients)
        if not recipients.count:
            raise Refused(f"{file.name} holds no e-mail address to send to in {file.title(column)}.")
        run.campaign = recipients.campaign(amount=amount, label=choices.label, again=choices.again)
        require_no_second_payment(run)
        yield run


def _verify(run: Run, parts: Iterator[Part]) -> None:
    """Verify every part while the next is read, and learn how many recipients the service takes in one.

    Raises:
        PointsError: the organization may not issue, or the service refuses a recipient.
    """
    calls = ((part, partial(run.service.verify, run.body(part))) for part in parts)
    try:
        for part, outcome in in_order(calls, at_most=_AT_ONCE):
            _require_verified(part, outcome)
    except FaultyBody as error:
        smaller = error.limit if error.limit and error.limit < run.size else run.size // 2
        if not error.is_too_long or smaller == 0:
            raise
        run.size = smaller
        deque(parts, maxlen=0)  # The rest is only read.
        _verify(run, run.recipients.parts(smaller))


def _require_verified(part: Part, outcome: Future[Mapping[str, Any]]) -> None:
    try:
        verdict = outcome.result()
    except FaultyBody as error:
        if not error.places:
            raise
        place, sentence = min(error.places.items())
        raise Refused(
            f"Nothing was sent: the service refuses line {part.lines[place]}: {sentence} Fix or remove that line."
        ) from None
    if verdict["code"] not in (None, "insufficient_balance"):
        raise Refused(verdict["error"])


def ask(run: Run) -> None:
    """Show what would be sent and ask whether to.

    Raises:
        Refused: nobody has agreed, or the whole cannot be paid although that was asked for.
    """
    if not (run.choices.yes and run.choices.as_json):
        words.plan(run)
    if run.choices.atomic and run.cost > run.organization["balance"]:
        raise Refused(
            "Nothing was sent: the balance does not pay all of it. Refill, or omit --atomic to pay as many as it does."
        )
    if not (run.choices.yes or _agrees(err=run.choices.as_json)):
        raise Refused("Nothing was sent.")


def _agrees(*, err: bool) -> bool:
    """Ask a person, or whatever answers on standard input."""
    if sys.stdin is not None:  # It is None where its descriptor was closed.
        click.echo(err=err)
        try:
            return click.confirm("Send?", err=err)
        except click.Abort:
            click.echo(err=err)  # The question's line has no end yet.
            if sys.stdin.isatty():  # Ctrl-C or Ctrl-D.
                return False
    raise Refused("Nothing was sent: there was no answer. Use --yes to send without being asked.")


def _amount(choices: Choices, file: ListFile) -> int:
    """Return the points for each recipient, which a column of the list cannot give yet."""
    if choices.amount is not None:
        return choices.amount
    if found := file.places(AMOUNT):
        raise click.UsageError(
            f"{file.name} has the column {file.title(found[0])}, but amounts of their own cannot be sent yet: give one"
            " amount for all lines with --amount."
        )
    raise click.UsageError("Missing option '--amount'.")


def _lock(raw: BinaryIO, choices: Choices) -> None:
    """Keep other runs of the same list away until this one has ended."""
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
