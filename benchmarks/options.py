"""What a run is asked for, and what it says when it has nothing to say."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Options:
    """`rounds` looks at each figure; callers call for `seconds` at a time; `quick` leaves out 10 million rows."""

    rounds: int
    seconds: float
    quick: bool = False


class NotMeasured(Exception):
    """A section could not be measured; the sentence says why. The other sections go on."""
