"""Attempts to deliver an event: what came of one, and when the next is made after a failure."""

import random
from dataclasses import dataclass
from datetime import datetime

_MINUTE, _HOUR = 60.0, 3_600.0
# After the last of them, the last again.
SCHEDULE_S = (5.0, 5 * _MINUTE, 30 * _MINUTE, *(hours * _HOUR for hours in (2, 5, 10, 14, 20, 24)))
_SPREAD = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """What came of one attempt.

    `status` is the HTTP status, None without an answer; `error` says in a word why it failed, None when it did not;
    `retry_after_s` is what the receiver asked for.
    """

    at: datetime
    ms: int
    status: int | None
    error: str | None
    retry_after_s: float | None = None


def delay_s(failures: int, *, retry_after_s: float | None) -> float:
    """Return how many seconds to wait after a failure.

    Spread by a fifth, or receivers that failed together would be tried together. A receiver may ask for longer, up to
    twice the step.

    Args:
        failures: of this event so far, this one included.
        retry_after_s: what the receiver asked for.
    """
    step = SCHEDULE_S[min(failures, len(SCHEDULE_S)) - 1]
    spread = step * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311  # nosec B311  # It guards no secret.
    return max(spread, min(retry_after_s or 0.0, 2 * step))
