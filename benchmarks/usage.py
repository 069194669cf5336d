"""CPU time and memory of the parts (web, worker, postgresql and so on)."""

import contextlib
import subprocess
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


_LOOK_EVERY_S = 0.2


class Peak:
    """The most memory that processes and their children had for themselves, looked at now and then.

    What they share is left out. Of the first, the server, what it had at the beginning is left out too.
    """

    def __init__(self, server: int, client: int) -> None:
        self._server, self._client = server, client
        self._before = _private_bytes(server)
        self.bytes = (0, 0)

    def until_ended(self, process: "subprocess.Popen[str]") -> tuple[str, str]:
        """Look until a process has ended, and return what it wrote to its output and its errors."""
        while True:
            seen = _private_bytes(self._server) - self._before, _private_bytes(self._client)
            self.bytes = max(self.bytes[0], seen[0]), max(self.bytes[1], seen[1])
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=_LOOK_EVERY_S)


def _private_bytes(pid: int) -> int:
    return sum(_private_bytes_of(process) for process in _tree(pid))


def _private_bytes_of(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_full_info().uss)
    return 0
