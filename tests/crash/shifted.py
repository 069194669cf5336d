"""Runs a module as a program whose clock is wrong: `python -m tests.crash.shifted SECONDS MODULE ARGUMENTS…`.

Only what Python code reads is shifted, and that is all a process of this service reads by itself.
"""

import copyreg
import datetime
import runpy
import sys
import time
from typing import Any

_true_time = time.time
_TrueDatetime = datetime.datetime


def _pickled(moment: datetime.datetime) -> tuple[Any, ...]:
    return (datetime.datetime, _TrueDatetime.__reduce_ex__(moment, 2)[1])


def _shift_clock(shift_s: float) -> None:
    delta = datetime.timedelta(seconds=shift_s)

    class AnyDatetime(type):
        """Takes a true datetime, which C code makes, for one of the shifted class."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, _TrueDatetime)

    class ShiftedDatetime(_TrueDatetime, metaclass=AnyDatetime):
        def __new__(cls, *parts: Any, **more: Any) -> Any:
            """Make a true one: a library that knows the class alone, such as orjson, takes no other."""
            return _TrueDatetime(*parts, **more)

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return _TrueDatetime.now(tz) + delta

        @classmethod
        def utcnow(cls) -> Any:
            return _TrueDatetime.now(datetime.UTC).replace(tzinfo=None) + delta

    # Beat pickles moments: under the name by which whoever reads them, at whatever hour, finds the class.
    ShiftedDatetime.__module__, ShiftedDatetime.__qualname__ = "datetime", "datetime"
    copyreg.pickle(_TrueDatetime, _pickled)
    time.time = lambda: _true_time() + shift_s
    datetime.datetime = ShiftedDatetime  # type: ignore[misc]


if __name__ == "__main__":
    _shift_clock(float(sys.argv[1]))
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
