"""The identity of a process: process ids are used again, identities are not."""

from pathlib import Path

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


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
