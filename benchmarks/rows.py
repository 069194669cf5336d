"""What a section gives: rows of figures, one value a round, and the few statistics made of them."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any

# A measure's name: what it measures, and of which variant.
Named = tuple[str, tuple[tuple[str, int | str], ...]]
# What one look of a measure gives: its figures by name.
Look = Callable[[], Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure of a section: `what` was measured, `of` which variant, as `figure`, one value a round.

    A figure's unit stands last in its name (`_s`, `_per_s`, `_bytes`, `_ms`); counts have none.
    """

    what: str
    of: Mapping[str, int | str]
    figure: str
    values: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def take_turns(looks: Mapping[Named, Look], *, rounds: int, rest: Callable[[], object] = lambda: None) -> list[Row]:
    """Take one look of each measure a round, in turn, so that the machine's mood weighs on all alike.

    One round goes before to warm up, not counted. `rest` is called after each look, and waits until what that has
    left to be done is done: the next one shall not pay for it.
    """
    values: dict[tuple[Named, str], list[float]] = {}
    for turn in range(rounds + 1):
        for name, look in looks.items():
            seen = look()
            rest()
            if turn > 0:
                for figure, value in seen.items():
                    values.setdefault((name, figure), []).append(value)
    return [Row(what=what, of=dict(of), figure=figure, values=seen) for ((what, of), figure), seen in values.items()]


def repeated(look: Look, *, times: int) -> Look:
    """Make one look of several: the median of each figure."""

    def several() -> dict[str, float]:
        seen = [look() for _ in range(times)]
        return {figure: statistics.median(one[figure] for one in seen) for figure in seen[0]}

    return several


def named(what: str, **of: int | str) -> Named:
    """Return the name of a measure, as `take_turns` takes it."""
    return what, tuple(of.items())


def find(rows: Sequence[Row], what: str, figure: str, **of: int | str) -> Row | None:
    """Return the row of one figure, or None when it was not measured."""
    for row in rows:
        if row.what == what and row.figure == figure and dict(row.of) == of:
            return row
    return None


def joined(make: Callable[..., float], *rows: Row | None) -> Row | None:
    """Make one row of several, round by round: what stood side by side is put together. None if one is missing."""
    there = [row for row in rows if row is not None]
    if len(there) < len(rows):
        return None
    values = [make(*beside) for beside in zip(*(row.values for row in there), strict=True)]
    return replace(there[0], values=values)


def over(row: Row | None, ground: Row | None) -> Row | None:
    """Divide a row by another of the same run, round by round; over nothing it is infinite."""
    ratio = joined(lambda value, beside: value / beside if beside else math.inf, row, ground)
    return None if ratio is None else replace(ratio, figure="ratio")


def likely(values: Sequence[float], *, certainty: float) -> tuple[float, float]:
    """Return between which of the values the median of all that might have been seen lies, as certainly as this.

    Each value is as likely above that median as below it, whatever their distribution: the two are the innermost
    that leave so many out rarely enough, and the least and the greatest where the values are too few.
    """
    ordered, count = sorted(values), len(values)
    # How likely it lies beyond the values that are left when so many are left out at each end.
    beyond = accumulate(2 * math.comb(count, left_out) / 2**count for left_out in range((count + 1) // 2))
    left_out = max(0, sum(chance <= 1 - certainty for chance in beyond) - 1)
    return ordered[left_out], ordered[-1 - left_out]


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0 to 1) of the values do not exceed; 0 of none."""
    if not sorted_values:
        return 0.0
    place = max(0, -int(-share * len(sorted_values) // 1) - 1)
    return sorted_values[min(place, len(sorted_values) - 1)]
