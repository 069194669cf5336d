"""A picture of points by day, as SVG that the template writes: a bar for each day."""

from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

# The size of the picture, in its own units; a page scales it.
WIDTH, HEIGHT = 600, 140
_GAP = 4


class Bar(NamedTuple):
    """A bar with the day and the points that it stands for; `y` counts from the top."""

    day: date
    points: int
    x: float
    y: float
    width: float
    height: float


def bars(by_day: Mapping[date, int]) -> list[Bar]:
    """Return the bars of some days, side by side; the highest is as high as the picture."""
    most, step = max(by_day.values(), default=0), WIDTH / max(len(by_day), 1)
    drawn = []
    for number, (day, points) in enumerate(by_day.items()):
        height = round(HEIGHT * points / most, 1) if points > 0 else 0.0
        height = max(height, 1.5) if points > 0 else height  # A day with few points is seen too.
        drawn.append(Bar(day, points, round(number * step, 1), HEIGHT - height, round(step - _GAP, 1), height))
    return drawn
