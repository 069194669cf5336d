"""Who of a list was sent the same lately, as the service tells it: a sentence of the plan, before it asks."""

from collections import Counter

from app.cli.send.run import Run
from app.cli.tables import progress_bar
from app.errors import PointsError
from app.values.numbers import points

_BATCHES_NAMED_MAX = 3


def sent_lately(run: Run) -> str | None:
    """Return the sentence; None if nobody was, or if this run only repeats what is sent.

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
                found = run.service.sent_before(run.body(part), run.key(part))
            except PointsError as error:
                return f"not known: {error.sentence}"
            if found is None:
                return "not known: the service is older than this command"
            counts.update(same=found.same, same_label=found.same_label, same_amount=found.same_amount)
            batches.update({batch.batch_id: batch.recipients for batch in found.batches})
            days, has_more = found.days, has_more or found.batch_count > len(found.batches)
            is_whole &= found.complete
            looked_at += len(part.items)
            advance_to(looked_at)
    newest = "" if is_whole else f" Only the newest batches of {days} days were compared: there are too many."
    if not counts.total():
        return newest.strip() or None
    label = "with the same label" if run.has_labels else "without a label"
    words = {
        "same": f"the same points {label}",
        "same_label": "other points with the same label",
        "same_amount": "the same points with another label",
    }
    told = ", ".join(f"{points(counts[kind])} {what}" for kind, what in words.items() if counts[kind])
    named = batches.most_common(_BATCHES_NAMED_MAX)
    where = ", ".join(f"batch {batch_id} ({points(recipients)})" for batch_id, recipients in named)
    others = " and others" if has_more or len(batches) > len(named) else ""
    return f"{told}, within {days} days, in {where}{others}. They would be paid again.{newest}"
