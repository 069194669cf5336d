"""Writing a list of recipients as CSV, so that it is read back as the same recipients."""

import csv
from collections.abc import Sequence
from io import StringIO

from app.recipient_files.cells import for_spreadsheet, marked_as_text
from app.recipient_files.columns import UNPAID_BATCH, Item


def written(items: Sequence[Item]) -> bytes:
    """Return the list of these recipients. A column is there if one of them has such a value."""
    names = ["email", *(name for name in Item._fields[1:] if any(getattr(item, name) is not None for item in items))]
    return _csv(names, [[getattr(item, name) for name in names] for item in items])


def written_unpaid(items: Sequence[Item], batch_ids: Sequence[int]) -> bytes:
    """Return the list of unpaid recipients, each with its batch: so it is another list than the one that was sent.

    It may be opened in a spreadsheet, so no cell begins a formula; a reader undoes that.
    """
    rows = []
    for item, batch_id in zip(items, batch_ids, strict=True):
        reference, label = marked_as_text(item.reference or ""), for_spreadsheet(item.label or "")
        rows.append((for_spreadsheet(item.email), item.amount, reference, label, batch_id))
    return _csv([*Item._fields, UNPAID_BATCH], rows)


def _csv(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(heading)
    writer.writerows(rows)
    return text.getvalue().encode()
