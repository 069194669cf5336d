"""When a webhook is tried again after a failure, and when it is given up."""

import random
from datetime import timedelta

_MINUTE, _HOUR = 60.0, 3_600.0
# After the last of them, the last again.
SCHEDULE_S = (5.0, 5 * _MINUTE, 30 * _MINUTE, *(hours * _HOUR for hours in (2, 5, 10, 14, 20, 24)))
_SPREAD = 0.2
# After so long of nothing but failures it is disabled.
GIVEN_UP_AFTER = timedelta(days=5)


def delay_s(failures: int, *, retry_after_s: float | None) -> float:
    """Return how many seconds to wait after a failure.

    Spread by a fifth, or receivers that failed together would be tried together. A receiver may ask for longer, up to
    twice the step.

    Args:
        failures: of this event so far, this one included.
        retry_after_s: what the receiver asked for.
    """
    step = SCHEDULE_S[min(failures, len(SCHEDULE_S)) - 1]
    spread = step * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311  # It guards no secret.
    return max(spread, min(retry_after_s or 0.0, 2 * step))
