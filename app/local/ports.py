"""Ports on the loopback address: check whether one is free, and find a free one."""

import socket

from app.errors import Refused

HOST = "127.0.0.1"
PORT_MAX = 65_535
_FIRST_FOR_ALL = 1024
# How many ports above a taken one are tried, before any free port is suggested.
_NEAR = 20


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


def require_free(port: int, *, option: str, besides: int | None = None) -> None:
    """Check that a port the user chose is free.

    Args:
        port: the port.
        option: the option that chooses another.
        besides: a port for another part, which is not suggested.

    Raises:
        Refused: another program uses the port, or only root may use it. It names a port that is free.
    """
    if not is_free(port):
        near = range(max(port + 1, _FIRST_FOR_ALL), min(port + _NEAR, PORT_MAX) + 1)
        free = next((other for other in near if other != besides and is_free(other)), None) or any_free()
        variable = option.removeprefix("--").replace("-", "_").upper()
        raise Refused(
            f"Port {port} is taken by another program. Choose another: points up {option} {free},"
            f" or make run {variable}={free}."
        )


def any_free(preferred: int | None = None) -> int:
    """Return the preferred port if it is free, else any free port."""
    if preferred is not None and is_free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
