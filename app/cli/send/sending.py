"""Sending a list part by part: each request is on the disk before it is sent, and its rows soon after the answer."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import click

from app.cli.send.earlier import require_no_second_payment
from app.cli.send.result_rows import Request
from app.cli.send.run import Run
from app.cli.service import NoAnswer, in_order
from app.cli.tables import progress_bar
from app.errors import PointsError
from app.local.interrupts import interrupts_delayed
from points_client import Sent

_CONCURRENT_CALLS = 2
_CARRY_ON = "give the same command again to carry on: nothing is paid twice."


def send(run: Run) -> None:
    """Send the parts in order. However it ends, the result file tells how far it came."""
    try:
        if run.results.unanswered:
            _resend_unanswered(run)
            require_no_second_payment(run)
            run.totals.clear()
        _send_parts(run)
        if run.totals["debited"] < run.totals["sent"]:
            run.undebited = run.results.write_unpaid(run.campaign, list(run.columns.own))
    except KeyboardInterrupt:
        if run.results.unanswered:
            click.echo("Stopping once the outcome of the last batches is known; Ctrl-C stops at once.", err=True)
            with suppress(KeyboardInterrupt, PointsError, OSError):
                _resend_unanswered(run)
        if run.totals["sent"] < run.recipients.count:
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
    """Send the unanswered requests again, under their keys."""
    for request in list(run.results.unanswered):
        _write(run, request, run.service.send(request.body, request.key))


def _write(run: Run, request: Request, issued: Sent) -> None:
    with interrupts_delayed():
        run.results.write(request, issued)
        if run.is_of_this_campaign(request.key):
            run.add(issued)
