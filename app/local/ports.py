"""The loopback address: whether a port is free, a free port, and whether a server answers there."""

import socket
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from app.errors import Refused

HOST = "127.0.0.1"
_opener = build_opener(ProxyHandler({}))  # Never through a proxy from the environment.


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
    """Check that a port is free, which the user has chosen with an option.

    Raises:
        Refused: another program uses the port, or only root may use it.
    """
    if not is_free(port):
        variable = option.removeprefix("--").replace("-", "_").upper()
        raise Refused(
            f"Port {port} is taken by another program. Choose another: points up {option} N, or make run {variable}=N."
        )


def any_free(preferred: int | None = None) -> int:
    """Return the preferred port if it is free, else any free port."""
    if preferred is not None and is_free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answers(url: str, *, timeout_s: float = 5.0) -> bool:
    """Tell whether a GET of this address is answered with 200."""
    return status_of(url, timeout_s=timeout_s) == 200


def status_of(url: str, *, timeout_s: float = 5.0) -> int | None:
    """Return the status with which a GET of this address is answered; None if nothing answers."""
    try:
        with _opener.open(url, timeout=timeout_s) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()  # It is a response too, and holds a connection.
        return error.code
    except (OSError, HTTPException):
        return None
