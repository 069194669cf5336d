"""Numbers and times as a person reads them, and how many recipients a balance pays."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime


def points(number: int) -> str:
    """Write a number with its thousands apart."""
    return f"{number:,}"


# With a comma before each three digits it can be read in one way only, where every number is whole.
_GROUPED = re.compile("[1-9][0-9]{0,2}(,[0-9]{3})+")


def figure_of(text: str, *, digits_max: int = 19) -> int | None:
    """Return a number in ASCII digits, also as `points` writes it, such as 1,000; None for anything else."""
    digits = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= digits_max else None


def moment(when: datetime) -> str:
    """Write a time to the minute, in UTC: PostgreSQL answers in the zone of its connection."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def figures_apart(sentence: str) -> str:
    """Write the figures in a sentence with their thousands apart, but not the year of a date or digits in a name."""
    return _FIGURE.sub(lambda figure: points(int(figure[0])), sentence)


_FIGURE = re.compile(r"(?<![\w.,:/-])[0-9]{4,19}(?![\w:/-])")


def size(byte_count: int) -> str:
    """Write how large something may be."""
    return f"{byte_count // 1_048_576} MB" if byte_count >= 1_048_576 else f"{byte_count // 1_024} kB"


def counted(number: int, noun: str, ending: str = "s") -> str:
    """Write how many there are of something; `ending` makes its plural."""
    return f"{points(number)} {noun}{'' if number == 1 else ending}"


def paid_count(balance: int, *, recipients: int, amount: int | None, running_totals: Sequence[int] | None) -> int:
    """Return how many recipients a balance pays, from the first on, up to the first that it cannot pay.

    Args:
        amount: the points of each; None: `running_totals` has for each the sum up to it.
    """
    if running_totals is not None:
        return bisect_right(running_totals, balance)
    assert amount is not None, "there is an amount, or there are running totals"
    return min(recipients, balance // amount)
