"""The options of a run, and the error of a section that could not be measured."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Options:
    """`rounds` a figure; callers call for `seconds` at a time; `quick` leaves out 10 million rows.

    `rows` is where section `scale` ends.
    """

    rounds: int
    seconds: float
    quick: bool = False
    rows: int = 100_000_000


class NotMeasured(Exception):
    """A section could not be measured; the sentence says why. The other sections go on."""
