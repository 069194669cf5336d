"""Forked processes: work that each of them does at the same time, with what the parent has made."""

import os
import sys
import traceback
import warnings
from collections.abc import Callable


def in_children(work: Callable[[int], None], children: int) -> list[int]:
    """Do work in forked processes; return the status of each, 0 where nothing was raised."""
    started = []
    for number in range(children):
        child = os.fork()
        if child == 0:
            status = 1
            # Nobody reads a child's warnings, and in Python 3.11 one that is raised inside an import breaks the import.
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                work(number)
                status = 0
            except BaseException:  # noqa: BLE001  # A child must not go on with the tests.
                traceback.print_exc(file=sys.stderr)
            os._exit(status)
        started.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in started]
