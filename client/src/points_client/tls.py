"""Which certificates are trusted: those of `ssl_context`, of `SSL_CERT_FILE` or `SSL_CERT_DIR`, or httpx's own."""

import os
import ssl

import httpx


def context(ssl_context: ssl.SSLContext | None) -> ssl.SSLContext:
    """Return the context of all connections.

    Raises:
        ValueError: the environment names a file or folder that cannot be used.
    """
    if ssl_context is not None:
        return ssl_context
    for name, argument in (("SSL_CERT_FILE", "cafile"), ("SSL_CERT_DIR", "capath")):
        named = os.environ.get(name)
        if named:
            try:
                if not os.path.exists(named):
                    raise FileNotFoundError("it does not exist")
                return ssl.create_default_context(**{argument: named})  # type: ignore[arg-type]
            except OSError as error:
                raise ValueError(f"{name} names {named}, which cannot be used: {error}.") from None
    return httpx.create_ssl_context()
