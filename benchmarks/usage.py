"""CPU time and resident memory of the parts (web, worker, postgresql and so on)."""

import contextlib
from collections.abc import Mapping

import psutil


def cpu_s(parts: Mapping[str, int]) -> dict[str, float]:
    """Return the CPU seconds used so far by each part (given by process id) and its children."""
    return {name: sum(_cpu_s_of(process) for process in _tree(pid)) for name, pid in parts.items()}


def resident_bytes(parts: Mapping[str, int]) -> dict[str, int]:
    """Return each part's resident memory now. Shared pages count once in each process."""
    return {name: sum(_resident_bytes_of(process) for process in _tree(pid)) for name, pid in parts.items()}


def _tree(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _cpu_s_of(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        # A child that has ended still counts, through its parent.
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def _resident_bytes_of(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.NoSuchProcess):
        return int(process.memory_info().rss)
    return 0
