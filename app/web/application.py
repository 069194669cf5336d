"""The HTTP edge: `create_app` registers the endpoints, and gives every answer its envelope and headers."""

import zlib

from flask import Flask, Response, request
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException
from werkzeug.routing import IntegerConverter

from app import logs
from app.api import envelope
from app.api.calls import blueprint as calls
from app.api.openapi import description  # noqa: F401  # It imports every view, so every call is declared.
from app.api.rate_limit import add_what_is_left, limit_rate
from app.console import add_console, as_page
from app.errors import OutOfReach, PointsError
from app.metrics.requests import current_record
from app.postgres.database import is_away
from app.settings import settings
from app.web.recording import record_requests

_log = logs.logger()


class _AsciiInteger(IntegerConverter):
    """An id in a path, in ASCII digits. Werkzeug's own converter accepts the digits of every script."""

    regex = "[0-9]+"


def create_app() -> Flask:
    """Make the WSGI application.

    Raises:
        SettingsError: a setting is missing or wrong.
    """
    app = Flask(__name__, static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.converters["int"] = _AsciiInteger
    # A wrong path is a 404: a redirect could turn a POST into a GET.
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.url_map.redirect_defaults = False
    app.register_blueprint(calls)
    add_console(app)
    record_requests(app)
    limit_rate(app)
    app.after_request(_add_headers)
    app.register_error_handler(PointsError, as_page(envelope.failure_of))
    app.register_error_handler(HTTPException, as_page(_http_failure))
    app.register_error_handler(SQLAlchemyError, as_page(_database_failure))
    app.register_error_handler(Exception, as_page(_unexpected_failure))
    return app


def _add_headers(response: Response) -> Response:
    headers = response.headers
    kept = headers.get("Cache-Control")  # Only the style and the script of the console set it.
    headers.update(envelope.HEADERS)
    if kept is not None:
        headers["Cache-Control"] = kept
    add_what_is_left(response)
    compress_if_asked(response)
    return response


# Sentences for errors that Werkzeug raises, each with its field.
_HTTP_SENTENCES = {
    404: ("path", "There is nothing at this path; /docs shows what there is."),
    405: ("method", "This path does not take this method; the Allow header names those it takes."),
}


def _http_failure(error: HTTPException) -> Response:
    status = error.code or 500
    if status == 413:
        limit = settings().body_bytes_max
        faults = {"body": [f"The body must have at most {limit} bytes, but has more."]}
    elif status in _HTTP_SENTENCES:
        field, sentence = _HTTP_SENTENCES[status]
        faults = {field: [sentence]}
    else:
        field = {408: "body", 415: "content_type"}.get(status, "request")
        faults = {field: [error.description or error.name]}
    response = envelope.failure(status, faults)
    for name, value in error.get_headers():
        if name not in ("Content-Type", "Content-Length"):
            response.headers[name] = value
    return response


def _database_failure(error: SQLAlchemyError) -> Response:
    """Answer 503 when PostgreSQL is away or overloaded; any other error of the database is a fault of the service."""
    if not is_away(error):
        return _unexpected_failure(error)
    _log.warning("postgresql_out_of_reach", **logs.kind_of(error))
    return envelope.failure_of(OutOfReach())


def _unexpected_failure(error: Exception) -> Response:
    """Answer 500. Log the kind and the place of the error, but not its text, which may hold values."""
    _log.error("request_failed", **logs.kind_of(error), places=logs.places_of(error.__traceback__))
    sentence = (
        f"Something went wrong on our side. Quote the request id {current_record().request_id} when you report it."
    )
    return envelope.failure(500, {"service": [sentence]})


# Measured on 10,000 transactions: docs/performance.md.
_LEVEL = 1
_SHORTEST_BYTES = 1_025
_GZIP = 31  # The window and the container, in a single number of zlib's.


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
