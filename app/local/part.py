"""A part: one process of the service, as the supervisor starts and ends it."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Part:
    """One process of the service.

    `stop_signal` asks it to end in good order; after `stop_timeout_s` it is killed with all it started.
    Lines of its output with `hide` in them are not shown.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = 40.0
    hide: str | None = None
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    deaths: int = 0
    start_at: float = 0.0


def kill_group(pid: int) -> None:
    """End what a part has started and not ended itself; the group outlives its leader."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
