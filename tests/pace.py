"""How slow this machine is just now. A bound on what is computed holds where a plain computation takes `_SET_S`."""

import statistics
import time

_SET_S = 0.16
_ROUNDS = 5


def slowness() -> float:
    """Return how many times as long this machine takes for the plain computation; at least 1."""
    return max(1.0, statistics.median(_computed_s() for _ in range(_ROUNDS)) / _SET_S)


def _computed_s() -> float:
    began = time.process_time()
    counted = {f"key {number}": number for number in range(400_000)}
    assert sum(counted.values()) > 0
    return time.process_time() - began
