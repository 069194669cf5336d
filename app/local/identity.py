"""What tells a process from every other one that had, or will have, its number."""

from pathlib import Path

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def moment_of_birth(process: psutil.Process) -> str:
    """Return a text that another process of the same number never has, on this machine.

    By the clock the moment would do, were that not set again: it is told as the time since the machine was started,
    and which of its starts that was.

    Raises:
        psutil.NoSuchProcess: it has ended.
    """
    created = process.create_time()
    try:
        return f"{_BOOT_ID.read_text().strip()} {created - psutil.boot_time():.2f}"
    except OSError:  # macOS, where psutil makes good what the clock was moved by.
        return f"{created:.2f}"
