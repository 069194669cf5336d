"""The options of a run, and the error of a section that could not be measured."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Options:
    """`rounds` a figure; callers call for `seconds` at a time; `quick` leaves out 10 million rows."""

    rounds: int
    seconds: float
    quick: bool = False


class NotMeasured(Exception):
    """A section could not be measured; the sentence says why. The other sections go on."""
