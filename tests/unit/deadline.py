"""Waiting in a test for what happens elsewhere: looked for until it is there, or a deadline has passed."""

import time
from collections.abc import Callable

TIMEOUT_S = 20.0
_LOOK_EVERY_S = 0.005


def until(condition: Callable[[], object], what: str, *, timeout_s: float = TIMEOUT_S) -> None:
    """Return as soon as `condition` holds; fail with the words of `what` when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not in {timeout_s:g} s: {what}"
        time.sleep(_LOOK_EVERY_S)
