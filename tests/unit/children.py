"""A process of a test's own, forked from it as gunicorn forks its processes."""

import os
import warnings
from collections.abc import Callable


def done_in_a_child(work: Callable[[], None]) -> None:
    """Do something in a forked child, and return when it has ended well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # It does one thing, and needs none of our threads.
        child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
