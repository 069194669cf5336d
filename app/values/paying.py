"""How far a balance pays. The function `paid_count` of the database says the same; a test holds the two together."""

from bisect import bisect_right
from collections.abc import Sequence


def paid_count(balance: int, *, recipients: int, amount: int | None, running_totals: Sequence[int] | None) -> int:
    """Return how many recipients a balance pays, from the first on, up to the first that it cannot pay.

    Args:
        amount: the points of each; None: `running_totals` has for each the sum up to it.
    """
    if running_totals is not None:
        return bisect_right(running_totals, balance)
    assert amount is not None, "there is an amount, or there are running totals"
    return min(recipients, balance // amount)
