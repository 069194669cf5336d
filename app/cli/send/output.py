"""The output of `points send`, for a person and as JSON: the plan and the outcome."""

from collections import Counter
from typing import Any

from rich.text import Text

from app.cli.answer import Answer, write_error
from app.cli.send.run import Choices, Run
from app.cli.tables import console, print_pairs, progress_bar
from app.errors import PointsError
from app.recipient_files.columns import unused_columns
from app.recipient_files.recipients import Recipients
from app.recipient_files.text import INCLUDE
from app.values.numbers import counted, points

_BAD_LINES_SHOWN_MAX = 20
_BATCHES_NAMED_MAX = 3


def bad_lines(choices: Choices, recipients: Recipients) -> None:
    """List the first bad lines on standard error; the result file will have them all."""
    err = console(stderr=True)
    for line in recipients.bad[:_BAD_LINES_SHOWN_MAX]:
        err.print(Text(f"line {line.line}: {line.reason}", "yellow"), soft_wrap=True)
    if (more := len(recipients.bad) - _BAD_LINES_SHOWN_MAX) > 0:
        rest = f"… and {counted(more, 'more bad line')}; {choices.result_path.name} will name them all."
        err.print(Text(rest, "yellow"), soft_wrap=True)


def plan(run: Run) -> None:
    """Show the plan and its cost, and who was sent the same lately. It never shows which recipients have accounts."""
    recipients, balance = run.recipients, run.organization.balance
    left = balance - run.cost
    mode = ", sandbox" if run.choices.sandbox else ""
    rows = {
        "Organization": f"{run.organization.name} ({run.organization.id}{mode})",
        "Sheet": None if run.list.sheet is None else run.list.sheet.title,
        "Column": run.list.title(run.columns.address),
        **{f"{name.capitalize()}s": run.list.title(place) for name, place in run.columns.own.items()},
        "Not used": ", ".join(unused_columns(run.list, run.columns)) or None,
        "Hidden rows": _hidden_rows(run),
        "Lines": points(recipients.count + len(recipients.bad)),
        "Left out": _left_out(run),
        "Recipients": points(recipients.count),
        "First": ", ".join(recipients.first),
        "Last": ", ".join(recipients.last) if recipients.count > len(recipients.first) else None,
        "Sent before": f"{points(run.before)}; they are not paid again" if run.before else None,
        "Sent lately": _sent_lately(run),
        "Not answered": f"{points(run.unanswered)} of a run that was cut off; they are checked first"
        if run.unanswered
        else None,
        "Label": run.choices.label,
        "Points each": _points_each(run),
        "In total": points(run.cost),
        "Balance": points(balance),
        "Left after": points(left) if left >= 0 else _too_low(run),
    }
    print_pairs(console(stderr=run.choices.as_json), rows)


def _hidden_rows(run: Run) -> str | None:
    hidden = 0 if run.list.sheet is None else run.list.sheet.hidden_rows
    return f"{points(hidden)}, {'included' if run.choices.hidden_rows == INCLUDE else 'left out'}" if hidden else None


def _sent_lately(run: Run) -> str | None:
    """Say who was sent the same lately; None if nobody was, or if this run only repeats what is sent.

    The service compares each part under the idempotency key that it will have: what this list has sent under that key
    is not paid again, and does not count.
    """
    if run.before == run.recipients.count:
        return None
    counts, batches = Counter[str](), Counter[int]()
    days, has_more, is_whole = 0, False, True
    with progress_bar("Looking at earlier sends", total=run.recipients.count) as advance_to:
        looked_at = 0
        for part in run.recipients.parts(run.size):
            try:
                lately = run.service.sent_before(run.body(part), run.key(part.number))
            except PointsError as error:
                return f"not known: {error.sentence}"
            if lately is None:
                return "not known: the service is older than this command"
            counts.update(same=lately.same, same_label=lately.same_label, same_amount=lately.same_amount)
            batches.update({batch.batch_id: batch.recipients for batch in lately.batches})
            days, has_more = lately.days, has_more or lately.batch_count > len(lately.batches)
            is_whole &= lately.complete
            looked_at += len(part.items)
            advance_to(looked_at)
    newest = "" if is_whole else f" Only the newest batches of {days} days were compared: there are too many."
    if not counts.total():
        return newest.strip() or None
    has_labels = run.choices.label is not None or run.columns.label is not None
    label = "with the same label" if has_labels else "without a label"
    words = {
        "same": f"the same points {label}",
        "same_label": "other points with the same label",
        "same_amount": "the same points with another label",
    }
    who = ", ".join(f"{points(counts[kind])} {what}" for kind, what in words.items() if counts[kind])
    named = batches.most_common(_BATCHES_NAMED_MAX)
    where = ", ".join(f"batch {batch_id} ({points(recipients)})" for batch_id, recipients in named)
    others = " and others" if has_more or len(batches) > len(named) else ""
    return f"{who}, within {days} days, in {where}{others}. They would be paid again.{newest}"


def report(run: Run) -> int:
    """Print the outcome; return the exit status: 0 all sent, 3 lines were left out, 1 not all sent."""
    if run.choices.as_json:
        Answer(_document(run)).print(as_json=True)
    else:
        _outcome(run)
    if run.stopped is not None:
        write_error(run.stopped)
        return 1
    return 3 if run.recipients.bad else 0


def _outcome(run: Run) -> None:
    totals, out = run.totals, console()
    held = totals["debited"] - totals["credited"]
    is_news = totals["replayed"] < totals["batches"]
    unsent = run.recipients.count - totals["sent"] - run.unanswered
    before = f", {points(totals['replayed'])} of them issued before" if totals["replayed"] else ""
    refill = f" After a refill, send {run.undebited} with the same options." if run.undebited else ""
    rows = {
        "Batches": f"{points(totals['batches'])}{before}",
        "Points debited": points(totals["points"]) if is_news else f"0 now; {points(totals['points'])} before",
        "Credited": points(totals["credited"]),
        "Held": f"{points(held)}, until an account is registered" if held else "0",
        "Erased": f"{points(totals['erased'])}, who are not debited" if totals["erased"] else None,
        "Not debited": f"{points(run.unpaid)}: the balance was too low.{refill}" if run.unpaid else None,
        "Left out": _left_out(run),
        "Not answered": f"{points(run.unanswered)}: they may have been paid, or may still be"
        if run.unanswered
        else None,
        "Not sent": points(unsent) if unsent > 0 else None,
        # A replay shows the balance right after its batch, which is an old balance.
        "Left after" if is_news else "Balance then": points(run.balance),
        "Each line": str(run.results.path),
    }
    out.print()
    print_pairs(out, rows)


def _points_each(run: Run) -> str:
    if run.choices.amount is not None:
        return points(run.choices.amount)
    least, most = run.recipients.own_range or (0, 0)
    return points(most) if least == most else f"{points(least)} to {points(most)}"


def _too_low(run: Run) -> str:
    paid = run.affordable()
    if not paid:
        return "The balance pays nobody."
    # If lines have their own amounts, a list of several batches may be paid in parts.
    first = "" if run.choices.amount is None and run.recipients.count > run.size else "the first "
    return f"The balance pays only {first}{points(paid)}; the others are not debited."


def _left_out(run: Run) -> str | None:
    return counted(len(run.recipients.bad), "bad line") if run.recipients.bad else None


def _document(run: Run) -> dict[str, Any]:
    totals, bad = run.totals, run.recipients.bad
    return {
        "complete": run.stopped is None,
        "error": run.stopped,
        "organization_id": run.organization.id,
        "sandbox": run.choices.sandbox,
        "amount": run.choices.amount,
        "label": run.choices.label,
        "sheet": None if run.list.sheet is None else run.list.sheet.name,
        "column": run.list.title(run.columns.address),
        **{f"{name}_column": None for name in ("amount", "reference", "label")},
        **{f"{name}_column": run.list.title(place) for name, place in run.columns.own.items()},
        "lines": run.recipients.count + len(bad),
        "recipients": run.recipients.count,
        **{name: totals[name] for name in ("sent", "debited", "erased", "credited", "points", "batches")},
        "held": totals["debited"] - totals["credited"],
        "not_debited": totals["sent"] - totals["debited"],
        "replayed_batches": totals["replayed"],
        "unanswered": run.unanswered,
        "current_balance": run.balance,
        "not_used": unused_columns(run.list, run.columns),
        "bad": len(bad),
        "bad_lines": [line._asdict() for line in bad],
        "result": str(run.results.path),
        "undebited": None if run.undebited is None else str(run.undebited),
    }
