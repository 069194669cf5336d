"""Ports on the loopback address: whether one is free, and finding one that is."""

import socket

from app.errors import Refused

HOST = "127.0.0.1"
PORT_MAX = 65_535


def is_free(port: int) -> bool:
    """Tell whether a server could listen on this port now.

    Raises:
        Refused: the system keeps it for root.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError:
            raise Refused(f"Port {port} is not open to this user: choose one from 1024 on.") from None
        except OSError:
            return False
    return True


def require_free(port: int, *, option: str) -> None:
    """Raise a sentence that says what to do when a port the user chose is taken.

    Raises:
        Refused: another program listens there, or the system keeps it for root.
    """
    if not is_free(port):
        other = port + 1 if port < PORT_MAX else port - 1
        raise Refused(f"Port {port} is taken by another program. Choose another: points up {option} {other}.")


def any_free(preferred: int | None = None) -> int:
    """Return the preferred port if it is free, else any that is."""
    if preferred is not None and is_free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
