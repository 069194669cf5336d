"""`points reverse`: take a batch back over HTTP, with a plan, a question and the outcome."""

from collections import Counter
from contextlib import closing
from dataclasses import asdict

import click

from app.cli.answer import Answer, confirms
from app.cli.options import RowId, calling_options, data_dir_option, json_option, patience_option, yes_option
from app.cli.service import NoAnswer, Service, running_url
from app.cli.tables import console, print_pairs
from app.errors import Refused
from app.values.numbers import counted, points
from points_client import Organization, Recoverable, Reversed

_NOTHING = "Nothing was taken back"


@click.command()
@click.argument("batch_id", type=RowId("batch"))
@click.option("--reason", required=True, help="Why, kept with the reversal: up to 255 characters.")
@calling_options
@patience_option
@yes_option
@json_option
@data_dir_option
def reverse(
    batch_id: int, reason: str, key: str, url: str | None, patience: float, yes: bool, as_json: bool, data_dir: str
) -> None:
    """Take back what is left of a batch: verify, ask, do it, and show the outcome.

    Held points can then never be claimed; credited ones are taken from their users. Giving the same command again
    takes only what is left.
    """
    service = Service(url or running_url(data_dir), key, patience_s=patience)
    with closing(service):
        plan = service.answer(lambda points: points.verify_reverse(batch=batch_id, reason=reason))
        if not (yes and as_json):
            _show_plan(service.organization(), batch_id, plan, err=as_json)
        if not plan.validated:
            raise Refused(f"{_NOTHING}: {plan.error}")
        if not (yes or confirms("Take it back?", nothing_done=_NOTHING, how="take it back", err=as_json)):
            raise Refused(f"{_NOTHING}.")
        result = _take_back(service, batch_id, reason)
    if as_json:
        names = ("reversal_id", "transactions", "amount", "current_balance")
        Answer({name: value for name, value in asdict(result).items() if name in names}).print(as_json=True)
    else:
        _show_outcome(result)


def _take_back(service: Service, batch_id: int, reason: str) -> Reversed:
    """Take a batch back, and wait until that is committed."""
    try:
        result = service.answer(lambda points: points.reverse(batch=batch_id, reason=reason, wait_s=service.wait_s))
        if result.status != "done":
            raise NoAnswer(f"Reversal {result.reversal_id} is queued, and was not done in the time of --patience.")
    except NoAnswer as error:
        raise Refused(f"{error.sentence} Give the command again: it takes only what is left.") from None
    return result


def _show_plan(organization: Organization, batch_id: int, plan: Recoverable, *, err: bool) -> None:
    rows = {
        "Organization": f"{organization.name} ({organization.id})",
        "Batch": str(batch_id),
        "Transactions": points(plan.transactions),
        "Credited": _count(plan.credited, "taken from their users"),
        "Held": _count(plan.held, "never to be claimed"),
        "Back already": _count(plan.already_reversed, "nothing is left of them"),
        "Not debited": _count(plan.not_debited, "nothing to take"),
        "Comes back": counted(plan.recoverable, "point"),
        "Balance": points(organization.balance),
        "Balance after": points(organization.balance + plan.recoverable),
    }
    print_pairs(console(stderr=err), rows)


def _count(number: int, meaning: str) -> str | None:
    return f"{points(number)}, {meaning}" if number else None


def _show_outcome(result: Reversed) -> None:
    codes = Counter(transaction.code for transaction in result.transactions)
    out = console()
    out.print()
    rows = {
        "Reversal": str(result.reversal_id),
        "Taken back": f"{counted(result.amount or 0, 'point')} of {counted(codes[None], 'transaction')}",
        "Nothing left": points(codes["already_reversed"]) if codes["already_reversed"] else None,
        "Not debited": points(codes["not_debited"]) if codes["not_debited"] else None,
        "Balance": points(result.current_balance or 0),
    }
    print_pairs(out, rows)
