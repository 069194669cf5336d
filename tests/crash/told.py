"""What the logs must tell of what callers were answered: each answer once, under its type, with its points."""

from collections.abc import Iterable, Iterator

from tests.crash.followers import Log
from tests.crash.intents import Intents, Known


def differences(logs: Iterable[Log], intents: Intents) -> list[str]:
    """Return a sentence for each answer that its log does not tell as it was given."""
    told = {(log.organization_id, log.sandbox): log.told for log in logs}
    return [
        f"{what} is told as {seen} instead of {amounts}"
        for what, log, event, amounts in _answers(intents)
        if (seen := told[log].get(event, [])) != amounts
    ]


def _answers(intents: Intents) -> Iterator[tuple[str, tuple[int, bool], tuple[str, int], list[int | None]]]:
    """Yield each answer with its log, the type and subject of its event, and the points of each event that is due."""
    for intent in intents.all():
        log = intent.organization_id, intent.sandbox
        if intent.known is Known.ISSUED and intent.batch_id is not None:
            yield f"send {intent.label}", log, ("batch.issued", intent.batch_id), [intent.total]
            yield f"send {intent.label}", log, ("batch.cancelled", intent.batch_id), []
        elif intent.known is Known.CANCELLED and intent.batch_id is not None:
            yield f"cancelled send {intent.label}", log, ("batch.cancelled", intent.batch_id), [None]
            yield f"cancelled send {intent.label}", log, ("batch.issued", intent.batch_id), []
    for undo in intents.undos():
        if undo.known is Known.ISSUED and undo.reversal_id is not None:
            log, points = (undo.of.organization_id, undo.of.sandbox), sum(points for _, points, _ in undo.taken)
            yield f"reversal {undo.reason}", log, ("reversal.issued", undo.reversal_id), [points] if points else []
