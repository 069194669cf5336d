"""A part: one process of the service, started and ended by the supervisor."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Part:
    """One process of the service.

    `stop_signal` asks the part to end cleanly; after `stop_timeout_s` it is killed with its children.
    Lines of its output that contain `hide` are not shown. `mend` is called when it ends by its own error, once in a
    series of deaths. It returns a sentence about what it did, or None.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = 40.0
    hide: str | None = None
    mend: Callable[[], str | None] | None = None
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    deaths: int = 0
    is_mended: bool = False
    start_at: float = 0.0


def kill_group(pid: int) -> None:
    """Kill all processes that a part has started; they may outlive the part."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
