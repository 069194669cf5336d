"""What a person reads of a `points send`: what it would cost, and what it came to."""

import io
from collections.abc import Iterator
from contextlib import closing

import pytest
from rich.console import Console

from app.cli.send import words
from app.cli.send.earlier import Intent
from app.cli.send.recipients import Recipients
from app.cli.send.totals import Totals

_INTENT = Intent(campaign="c", amount=10, label=None, sandbox=False, organization_id=7)


@pytest.fixture
def recipients() -> Iterator[Recipients]:
    with closing(Recipients()) as found:
        for line in range(3):
            found.add(line, f"{line}@example.com")
        yield found


def _pairs(out: io.StringIO) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition("  ") for line in out.getvalue().splitlines())}


def _outcome(
    out: io.StringIO, totals: Totals, recipients: Recipients, *, sent: int, unanswered: int = 0
) -> dict[str, str]:
    console = Console(file=out, width=200)
    words.outcome(
        console,
        totals=totals,
        recipients=recipients,
        sent=sent,
        unanswered=unanswered,
        result="r.csv",
        undebited=None,
    )
    return _pairs(out)


@pytest.mark.parametrize(("unanswered", "not_answered", "not_sent"), [(0, None, "2"), (1, "1", "1"), (2, "2", None)])
def test_an_outcome_never_says_of_who_may_be_paid_that_nothing_was_sent(
    recipients: Recipients, unanswered: int, not_answered: str | None, not_sent: str | None
) -> None:
    shown = _outcome(io.StringIO(), Totals(batches=1, points=10, debited=1), recipients, sent=1, unanswered=unanswered)
    assert (shown.get("Not answered", "").partition(":")[0] or None, shown.get("Not sent")) == (not_answered, not_sent)


@pytest.mark.parametrize(
    ("balance", "settled", "cost", "left"),
    [
        (30, 0, "30", "0"),
        (29, 0, "30", "The balance pays only the first 2; the others are not debited."),
        (9, 0, "30", "The balance pays nobody."),
        (10, 2, "10", "0"),  # Whom an earlier run has paid costs nothing.
    ],
)
def test_a_plan_says_what_it_costs_and_whom_the_balance_pays(
    recipients: Recipients, balance: int, settled: int, cost: str, left: str
) -> None:
    organization = {"id": 7, "name": "Acme", "balance": balance}
    out = io.StringIO()
    words.plan(
        Console(file=out, width=200),
        intent=_INTENT,
        recipients=recipients,
        organization=organization,
        settled=settled,
        parts=1,
        column="email",
    )
    shown = _pairs(out)
    assert (shown["Costs in total"], shown["Left after"]) == (cost, left)


@pytest.mark.parametrize(
    ("replayed", "debited", "balance_name"),
    [(0, "30", "Left after"), (1, "30", "Left after"), (2, "0 now; 30 before", "Balance then")],
)
def test_an_outcome_tells_what_is_debited_now_from_what_was(
    recipients: Recipients, replayed: int, debited: str, balance_name: str
) -> None:
    totals = Totals(batches=2, replayed=replayed, points=30, debited=3, credited=3, current_balance=70)
    out = io.StringIO()
    _outcome(out, totals, recipients, sent=3)
    shown = _pairs(out)
    assert (shown["Points debited"], shown[balance_name]) == (debited, "70")
