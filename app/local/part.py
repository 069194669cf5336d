"""A part: one process of the service, started and ended by the supervisor; and how a process is known again."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


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


def process_identity(process: psutil.Process) -> str:
    """Return a text that no other process with the same id ever has on this machine.

    It is the boot id and the seconds from boot to the start of the process, which stay the same if the clock is set.

    Raises:
        psutil.NoSuchProcess: the process has ended.
    """
    created = process.create_time()
    try:
        return f"{_BOOT_ID.read_text().strip()} {created - psutil.boot_time():.2f}"
    except OSError:  # macOS; psutil allows for changes of the clock there.
        return f"{created:.2f}"


def kill_group(pid: int) -> None:
    """Kill all processes that a part has started; they may outlive the part."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
