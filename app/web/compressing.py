"""Compressing answers for callers that ask for it."""

import zlib

from flask import Response, request

# Measured on 10,000 transactions: docs/performance.md.
_LEVEL = 1
_SHORTEST_BYTES = 1_025
_GZIP = 31  # The window and the container, in one number of zlib's.


def compress_if_asked(response: Response) -> None:
    """Compress an answer of more than 1 kB, if the caller takes gzip.

    Pages of the console are left as they are: from the length of a compressed page one could guess the token in it
    (BREACH). No cache keeps an answer (`no-store`), so `Vary` needs no `Accept-Encoding`.
    """
    if "HTTP_ACCEPT_ENCODING" not in request.environ or request.path.startswith("/console"):
        return
    is_chunked = response.is_streamed
    body = b"".join(response.iter_encoded()) if is_chunked else response.get_data()
    if len(body) >= _SHORTEST_BYTES and request.accept_encodings.quality("gzip"):
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        body = packer.compress(body) + packer.flush()
        response.headers["Content-Encoding"] = "gzip"
        if not is_chunked:
            response.set_data(body)
    if is_chunked:
        response.response = iter([body])
