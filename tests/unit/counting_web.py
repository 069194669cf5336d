"""A web process as far as its counts go, for the tests of their files: it counts as many requests as each line says.

A program of its own, because a fork of the process that runs the tests would take along the locks of
whatever threads other tests have left in it.
"""

import sys

from prometheus_client import values

from app.metrics import processes


def main() -> None:
    """Take a slot, and answer each line of the input with its number once that many requests are counted."""
    values.ValueClass = values.MultiProcessValue(lambda: processes._slot)  # type: ignore[no-untyped-call]
    processes.take_slot()
    # The metrics take the kind of value that there is when they are made.
    from app.metrics.requests import count_request, watch_connections  # noqa: PLC0415

    watch_connections()
    for line in sys.stdin:
        for _ in range(int(line)):
            count_request("GET", "/test", 200, 0.01)
        print(processes._slot, flush=True)


if __name__ == "__main__":
    main()
