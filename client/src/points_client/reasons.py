"""Why a call did not reach the service or its answer was lost: what httpx, ssl and sockets raise, in words."""

import socket
import ssl
from collections.abc import Iterator

import httpx

# The request never left, so it cannot have been accepted.
_NEVER_LEFT = (
    *(httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError),
    *(httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError),
)
_NO_NAME = {getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)}


def never_left(error: Exception) -> bool:
    """Tell whether the call surely did not reach the service. UnicodeError: an impossible host name."""
    return isinstance(error, _NEVER_LEFT)


def is_hopeless(error: Exception) -> bool:
    """Tell whether no later try can succeed: a service that is away comes back, a name that is wrong does not."""
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol | httpx.InvalidURL | UnicodeError):
        return True
    return any(
        isinstance(one, ssl.SSLCertVerificationError)
        or (isinstance(one, ssl.SSLError) and one.reason == "WRONG_VERSION_NUMBER")
        or (isinstance(one, socket.gaierror) and one.errno in _NO_NAME)
        for one in _chain(error)
    )


def reason(error: BaseException) -> str:
    """Return the reason of an error in a few words; the deepest cause says most."""
    for one in _chain(error):
        if isinstance(one, ssl.SSLCertVerificationError):
            what = one.verify_message or one.reason
            return f"its certificate is not trusted ({what}); name the authority by SSL_CERT_FILE or ssl_context="
        if isinstance(one, ssl.SSLError) and one.reason == "WRONG_VERSION_NUMBER":
            return "it does not speak TLS: should the URL begin with http://?"
        if isinstance(one, socket.gaierror):
            return f"its name is not known ({one.strerror})"
        if isinstance(one, ConnectionRefusedError):
            return "Connection refused"
    if isinstance(error, httpx.PoolTimeout):
        return "all connections are busy"
    return str(error) or type(error).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        inner = getattr(one, "exceptions", None)  # A group: one for each address that was tried.
        one = inner[0] if inner else (one.__cause__ or one.__context__)
