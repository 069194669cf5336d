"""What a person reads: what would be sent, what was, and the bad lines."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from app.cli.send.earlier import Intent
from app.cli.send.recipients import BadLine, Recipients
from app.cli.send.totals import Totals
from app.cli.tables import counted, points, print_pairs

_BAD_LINES_SHOWN_MAX = 20


def bad_lines(console: Console, bad: Sequence[BadLine], *, result_name: str) -> None:
    """Name the bad lines; the file of results will name them all."""
    for line in bad[:_BAD_LINES_SHOWN_MAX]:
        console.print(Text(f"line {line.line}: {line.reason}", "yellow"), soft_wrap=True)
    if (more := len(bad) - _BAD_LINES_SHOWN_MAX) > 0:
        console.print(Text(f"… and {counted(more, 'more bad line')}; {result_name} will name them all.", "yellow"))


def plan(
    console: Console,
    *,
    intent: Intent,
    recipients: Recipients,
    organization: Mapping[str, Any],
    settled: int,
    parts: int,
    column: str,
) -> None:
    """Show what is about to be sent and what it costs. Who has an account is not known before, and not shown."""
    balance, cost = organization["balance"], (recipients.count - settled) * intent.amount
    paid = balance // intent.amount
    rows = {
        "Organization": f"{organization['name']} ({organization['id']}{', sandbox' if intent.sandbox else ''})",
        "Recipients": f"{points(recipients.count)} in {column}",
        "Left out": _bad(recipients),
        "Settled before": f"{points(settled)}; they are not paid again" if settled else None,
        "Batches": points(parts),
        "Label": intent.label,
        "Points each": points(intent.amount),
        "Costs in total": points(cost),
        "Balance": points(balance),
        "Left after": points(balance - cost)
        if cost <= balance
        else f"The balance pays only the first {points(paid)}; the others are not debited."
        if paid
        else "The balance pays nobody.",
    }
    print_pairs(console, rows)


def outcome(
    console: Console,
    *,
    totals: Totals,
    recipients: Recipients,
    sent: int,
    unanswered: int,
    result: str,
    undebited: str | None,
) -> None:
    """Show what the batches came to, and where each line's fate stands."""
    unsent = recipients.count - sent - unanswered
    is_news = totals.replayed < totals.batches
    rows = {
        "Batches": points(totals.batches)
        + (f", {points(totals.replayed)} of them had been issued before" if totals.replayed else ""),
        "Points debited": points(totals.points) if is_news else f"0 now; {points(totals.points)} before",
        "Credited": points(totals.credited),
        "Held": f"{points(totals.held)}, until an account is registered" if totals.held else "0",
        "Not debited": undebited
        and f"{points(sent - totals.debited)}: the balance was too low. After a refill, send {undebited}",
        "Left out": _bad(recipients),
        "Not answered": f"{points(unanswered)}: they may be paid, or may be yet" if unanswered else None,
        "Not sent": points(unsent) if unsent else None,
        # Of a batch that was issued before, the balance is the one it left then.
        "Left after" if is_news else "Balance then": None
        if totals.current_balance is None
        else points(totals.current_balance),
        "Each line": result,
    }
    print_pairs(console, rows)


def _bad(recipients: Recipients) -> str | None:
    return counted(len(recipients.bad), "bad line") if recipients.bad else None
