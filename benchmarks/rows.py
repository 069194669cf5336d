"""The rows of figures that a section returns, one value a round, and the statistics of them."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any

# The name of a measurement: what it measures, and its variant.
Name = tuple[str, tuple[tuple[str, int | str], ...]]
# One measurement; it returns its figures by name.
Measurement = Callable[[], Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure of a section: `what` was measured, its variant `of`, and the `figure`, with one value a round.

    A figure's name ends with its unit (`_s`, `_per_s`, `_bytes`, `_ms`); counts have none.
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


def take_turns(
    measures: Mapping[Name, Measurement], *, rounds: int, wait_idle: Callable[[], object] = lambda: None
) -> list[Row]:
    """Make each measurement once a round, in turn, so that changes of the machine's speed affect all alike.

    A first round warms up and is not counted. `rest` runs after each measurement: it waits until work left behind is
    done, so that the next measurement does not pay for it.
    """
    values: dict[tuple[Name, str], list[float]] = {}
    for turn in range(rounds + 1):
        for name, measurement in measures.items():
            seen = measurement()
            wait_idle()
            if turn > 0:
                for figure, value in seen.items():
                    values.setdefault((name, figure), []).append(value)
    return [Row(what=what, of=dict(of), figure=figure, values=seen) for ((what, of), figure), seen in values.items()]


def repeated(measurement: Measurement, *, times: int) -> Measurement:
    """Return a measurement that repeats another and takes each figure's median."""

    def several() -> dict[str, float]:
        seen = [measurement() for _ in range(times)]
        return {figure: statistics.median(one[figure] for one in seen) for figure in seen[0]}

    return several


def named(what: str, **of: int | str) -> Name:
    """Return the name of a measurement for `take_turns`."""
    return what, tuple(of.items())


def find(rows: Sequence[Row], what: str, figure: str, /, **of: int | str) -> Row | None:
    """Return the row of a figure, or None when it was not measured."""
    for row in rows:
        if row.what == what and row.figure == figure and dict(row.of) == of:
            return row
    return None


def combined(make: Callable[..., float], *rows: Row | None) -> Row | None:
    """Combine rows round by round; None if one is missing."""
    there = [row for row in rows if row is not None]
    if len(there) < len(rows):
        return None
    values = [make(*beside) for beside in zip(*(row.values for row in there), strict=True)]
    return replace(there[0], values=values)


def divided(row: Row | None, divisor: Row | None) -> Row | None:
    """Divide a row by another, round by round; a division by zero gives infinity."""
    ratio = combined(lambda value, beside: value / beside if beside else math.inf, row, divisor)
    return None if ratio is None else replace(ratio, figure="ratio")


def median_interval(values: Sequence[float], *, certainty: float) -> tuple[float, float]:
    """Return the two values between which the true median lies with this certainty.

    Each value is equally likely above or below the true median, whatever the distribution. The result is the innermost
    pair that is certain enough; with too few values, the least and the greatest.
    """
    ordered, count = sorted(values), len(values)
    # The probability that the median lies outside, by how many values are left out at each end.
    beyond = accumulate(2 * math.comb(count, left_out) / 2**count for left_out in range((count + 1) // 2))
    left_out = max(0, sum(chance <= 1 - certainty for chance in beyond) - 1)
    return ordered[left_out], ordered[-1 - left_out]


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0 to 1) of the values do not exceed; 0 if there are none."""
    if not sorted_values:
        return 0.0
    place = max(0, -int(-share * len(sorted_values) // 1) - 1)
    return sorted_values[min(place, len(sorted_values) - 1)]
