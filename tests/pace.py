"""How slow this machine is just now. A bound on time holds where a plain computation takes `_SET_S`."""

import os
import subprocess
import sys

# Of CPU, and so of time on a machine that does nothing else.
_SET_S = 0.16
# Five times, in a process of its own. What it prints is the median.
_COMPUTATION = """
import statistics, time
def computation_s():
    began = time.{clock}()
    counted = {{f"key {{number}}": number for number in range(400_000)}}
    assert sum(counted.values()) > 0
    return time.{clock}() - began
print(statistics.median(computation_s() for _ in range(5)))
"""


def slowness(clock: str = "perf_counter") -> float:
    """Return how many times as long the plain computation takes where all cores compute it at once; at least 1.

    Cores may share what they compute with. `clock` is that of `time` to go by: `process_time` counts CPU alone.
    """
    command = [sys.executable, "-c", _COMPUTATION.format(clock=clock)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(os.cpu_count() or 1)]
    return max(1.0, *(float(process.communicate()[0]) / _SET_S for process in running))


def in_time(took_s: float, allowed_s: float, clock: str = "perf_counter") -> bool:
    """Return whether something took no longer than it may. The pace is measured only for what took longer."""
    return took_s <= allowed_s or took_s <= allowed_s * slowness(clock)
