"""The parts of a long send: streamed from any iterable, each with a key from the run's name and its number."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from points_client.requests import AnyItem, item_body

PART_SIZE = 10_000


@dataclass(frozen=True, kw_only=True)
class Part:
    """One send of a run."""

    key: str
    items: list[dict[str, Any]]
    expect: dict[str, int]


def checked_run(run: str) -> str:
    """Return the name of a run.

    Raises:
        ValueError: it cannot begin an idempotency key.
    """
    if not re.fullmatch(r"[!-~]{1,230}", run):
        raise ValueError("A run is named by 1 to 230 visible ASCII characters.")
    return run


def parts(items: Iterable[AnyItem | str], *, run: str, amount: int | None, size: int) -> Iterator[Part]:
    """Yield the parts of a run, `size` items to each; the last has the rest. Only one part is read at a time."""
    bodies = (item_body({"email": item} if isinstance(item, str) else item) for item in items)
    number = 0
    while some := list(islice(bodies, size)):
        number += 1
        yield Part(key=f"{run}-part-{number}", items=some, expect=_expect(some, amount))


def _expect(items: list[dict[str, Any]], amount: int | None) -> dict[str, int]:
    """Return the control totals; without the points if an item has none, a fault that the service then reports."""
    own = [item.get("amount", amount) for item in items]
    points = [each for each in own if isinstance(each, int)]
    return {"recipients": len(items), **({"amount": sum(points)} if len(points) == len(own) else {})}
