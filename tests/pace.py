"""How slow this machine is just now. A bound on time holds where a plain computation takes `_SET_S`."""

import statistics
import time
from collections.abc import Callable

_SET_S = 0.16
_ROUNDS = 5


def slowness(clock: Callable[[], float] = time.perf_counter) -> float:
    """Return how many times as long the plain computation takes, by a clock of time or of CPU; at least 1."""
    return max(1.0, statistics.median(_computation_s(clock) for _ in range(_ROUNDS)) / _SET_S)


def _computation_s(clock: Callable[[], float]) -> float:
    began = clock()
    counted = {f"key {number}": number for number in range(400_000)}
    assert sum(counted.values()) > 0
    return clock() - began
