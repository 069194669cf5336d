"""Waiting in a test for what happens elsewhere: looked for until it is there, or a deadline has passed."""

import time
from collections.abc import Callable

# Far above what anything here takes on a busy machine, far below the time limit of a test: only a hang lasts so long.
TIMEOUT_S = 300.0
_LOOK_EVERY_S = 0.02


def comes_true(condition: Callable[..., object], *, within_s: float, every_s: float = _LOOK_EVERY_S) -> bool:
    """Return as soon as `condition` holds, or its time has passed; tell which of the two."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def until(
    condition: Callable[..., object],
    what: str = "what is awaited",
    *,
    within_s: float = TIMEOUT_S,
    every_s: float = _LOOK_EVERY_S,
) -> None:
    """Return as soon as `condition` holds; fail with the words of `what` when it does not in time."""
    assert comes_true(condition, within_s=within_s, every_s=every_s), f"not in {within_s:g} s: {what}"
