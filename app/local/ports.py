"""Ports on the loopback address: check whether one is free, and find a free one."""

import socket

from app.errors import Refused

HOST = "127.0.0.1"
PORT_MAX = 65_535


def is_free(port: int) -> bool:
    """Tell whether a server could listen on this port now.

    Raises:
        Refused: only root may use the port.
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
    """Check that a port the user chose is free; `option` names the option that chooses another.

    Raises:
        Refused: another program uses the port, or only root may use it.
    """
    if not is_free(port):
        other = port + 1 if port < PORT_MAX else port - 1
        raise Refused(f"Port {port} is taken by another program. Choose another: points up {option} {other}.")


def any_free(preferred: int | None = None) -> int:
    """Return the preferred port if it is free, else any free port."""
    if preferred is not None and is_free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
