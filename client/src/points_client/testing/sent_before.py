"""Who was sent the same lately, as the service tells it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from points_client.testing.books import Books, said
from points_client.testing.faults import items_of
from points_client.testing.fields import key_of

DAYS, NAMED_MAX = 30, 5
# From what is most alike to what is least.
_KINDS = ("same", "same_label", "same_amount")


def sent_before(books: Books, body: Mapping[str, Any], idempotency_key: str | None) -> dict[str, Any]:
    """Return how many of a send's recipients were sent the same, each counted once, and in which batches."""
    since = said(books.now() - timedelta(days=DAYS))
    asked: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for place, item in enumerate(items_of(body)):
        asked.setdefault(key_of(item["email"]), []).append((place, item))
    kinds: dict[int, int] = {}
    batches = []
    for batch, rows in books.sent(but_key=idempotency_key):
        if batch["issued_at"] is not None and batch["issued_at"] < since:
            continue
        alike = set()
        for row in rows:
            for place, item in asked.get(key_of(row["email"]), ()):
                if (kind := _kind(item, row)) is not None:
                    kinds[place] = min(kind, kinds.get(place, kind))
                    alike.add(place)
        if alike:
            about = {"batch_id": batch["batch_id"], "recipients": len(alike), "issued_at": batch["issued_at"]}
            batches.append(about)
    batches.sort(key=lambda one: (one["recipients"], one["issued_at"] or "~", one["batch_id"]), reverse=True)
    counts = {name: list(kinds.values()).count(kind) for kind, name in enumerate(_KINDS)}
    named = {"batch_count": len(batches), "batches": batches[:NAMED_MAX], "complete": True}
    return {"days": DAYS, "recipients": len(kinds), **counts, **named}


def _kind(item: Mapping[str, Any], row: Mapping[str, Any]) -> int | None:
    """Return how a recipient and what was sent to its address are alike; None: they are not."""
    if None not in (item["reference"], row["reference"]) and item["reference"] != row["reference"]:
        return None
    if item["amount"] == row["amount"]:
        return 0 if item["label"] == row["label"] else 2
    return 1 if item["label"] is not None and item["label"] == row["label"] else None
