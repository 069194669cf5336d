"""Ports for the servers of tests, which often listen at them seconds after they were chosen."""

import itertools
import os
import random
import socket

HOST = "127.0.0.1"

# Below the ports that Linux gives to outgoing connections, and other ones for each process of pytest-xdist:
# a port that is free when it is chosen would else be somebody else's when a server comes to listen there.
_FIRST, _OF_ONE_PROCESS, _PROCESSES = 12_000, 2_000, 10

_process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PROCESSES
_offsets = itertools.count(random.randrange(_OF_ONE_PROCESS))  # noqa: S311  # Two runs at once begin elsewhere.


def free_port() -> int:
    """Return a port that nobody listens at, and that no other test of this run is given."""
    while True:
        port = _FIRST + _OF_ONE_PROCESS * _process + next(_offsets) % _OF_ONE_PROCESS
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        return port
