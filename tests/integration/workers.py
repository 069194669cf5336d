"""The processes below a real worker: those of its pool, and its upkeep beside them."""

import contextlib

import psutil


def upkeep_of(worker: psutil.Process) -> list[psutil.Process]:
    return [child for child in worker.children() if _is_upkeep(child)]


def pool_of(worker: psutil.Process) -> list[psutil.Process]:
    return [child for child in worker.children() if not _is_upkeep(child)]


def _is_upkeep(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):  # It has just ended.
        return "worker.upkeep" in process.cmdline()
    return False
