"""What a run of `points send` came to: for a person, for a program, and as an exit status."""

from typing import Any

from app.cli.answer import Answer
from app.cli.send import words
from app.cli.send.run import Run
from app.cli.sentence import write_error


def report(run: Run) -> int:
    """Say what became of the file, and return the exit status: 0 only if every line of it was sent."""
    if run.choices.as_json:
        Answer(_document(run)).print(as_json=True)
    else:
        run.out.print()
        words.outcome(
            run.out,
            totals=run.totals,
            recipients=run.recipients,
            sent=run.sent,
            unanswered=run.unanswered,
            result=str(run.results.path),
            undebited=None if run.undebited is None else str(run.undebited),
        )
    if run.stopped is not None:
        write_error(run.stopped)
        return 1
    return 1 if run.recipients.bad else 0


def _document(run: Run) -> dict[str, Any]:
    totals = run.totals
    return {
        "complete": run.stopped is None,
        "error": run.stopped,
        "organization_id": run.intent.organization_id,
        "sandbox": run.intent.sandbox,
        "amount": run.intent.amount,
        "label": run.intent.label,
        "recipients": run.recipients.count,
        "sent": run.sent,
        "debited": totals.debited,
        "credited": totals.credited,
        "held": totals.held,
        "unanswered": run.unanswered,
        "not_debited": run.sent - totals.debited,
        "points": totals.points,
        "current_balance": totals.current_balance,
        "batches": totals.batches,
        "replayed_batches": totals.replayed,
        "bad": len(run.recipients.bad),
        "bad_lines": [bad._asdict() for bad in run.recipients.bad],
        "result": str(run.results.path),
        "undebited": None if run.undebited is None else str(run.undebited),
    }
