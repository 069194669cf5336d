"""The HTTP edge: `create_app` puts the endpoints together, and gives every answer its envelope and headers."""

import logging
import re
import uuid

from flask import Flask, Response, g, request
from flask_limiter import Limiter, RateLimitExceeded
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException

from app.api import batches, docs, envelope, health, openapi, organization, send, verify
from app.api.limits import limit_rate, retry_after_s
from app.errors import PointsError
from app.settings import settings

_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}\Z")
_RETRY_AFTER_S = 2

_log = logging.getLogger(__name__)


def create_app() -> Flask:
    """Make the WSGI application.

    Raises:
        SettingsError: a setting is missing or wrong.
    """
    app = Flask(__name__, static_folder=None)
    # One byte more than may be sent, so that a body without a length can be seen to be too long.
    app.config["MAX_CONTENT_LENGTH"] = settings().body_bytes_max + 1
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    # A path is right or it is a 404: no redirects that turn a POST into something else.
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.url_map.redirect_defaults = False
    for endpoint in (verify, send, batches, organization, health, openapi, docs):
        app.register_blueprint(endpoint.blueprint)
    app.before_request(_name_the_request)
    limiter = limit_rate(app)
    app.after_request(_add_headers)
    app.register_error_handler(PointsError, envelope.failure_of)
    app.register_error_handler(HTTPException, _http_failure)
    app.register_error_handler(RateLimitExceeded, lambda _: _too_many(limiter))
    app.register_error_handler(SQLAlchemyError, _database_failure)
    app.register_error_handler(Exception, _unexpected_failure)
    return app


def _name_the_request() -> None:
    """Take the caller's `X-Request-Id` if it is a sane one, else make one."""
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if _SANE_REQUEST_ID.match(given) else uuid.uuid4().hex


def _add_headers(response: Response) -> Response:
    response.headers["X-Request-Id"] = g.request_id
    response.headers["Cache-Control"] = "no-store, private"
    response.headers["Vary"] = "Accept, Authorization"
    response.headers["Via"] = "1.1 points"
    return response


# What Werkzeug raises on its own, in our words: the field it is about, and what would be right.
_HTTP_SENTENCES = {
    404: ("path", "There is nothing at this path."),
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
        field = "content_type" if status == 415 else "request"
        faults = {field: [error.description or error.name]}
    response = envelope.failure(status, faults)
    for name, value in error.get_headers():
        if name not in ("Content-Type", "Content-Length"):
            response.headers[name] = value
    return response


def _too_many(limiter: Limiter) -> Response:
    sentence = f"This key may make {settings().rate_limit} calls. Wait as long as Retry-After says, in seconds."
    response = envelope.failure(429, {"rate_limit": [sentence]})
    response.headers["Retry-After"] = str(retry_after_s(limiter))
    return response


def _database_failure(error: SQLAlchemyError) -> Response:
    """Answer 503 when PostgreSQL is away or overloaded; anything else is a fault of ours."""
    if not isinstance(error, OperationalError | PoolTimeout):
        return _unexpected_failure(error)
    _log.warning("PostgreSQL is out of reach: request_id=%s error=%s", g.request_id, _kind(error))
    response = envelope.failure(503, {"service": ["The service is out of reach of its database. Try again soon."]})
    response.headers["Retry-After"] = str(_RETRY_AFTER_S)
    return response


def _unexpected_failure(error: Exception) -> Response:
    """Answer 500. The log gets the place and the kind of the error, and not its text, which may hold values."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    _log.error("Unexpected error: request_id=%s error=%s at=%s", g.request_id, _kind(error), where)
    sentence = f"Something went wrong on our side. Name the request {g.request_id} when you report it."
    return envelope.failure(500, {"service": [sentence]})


def _kind(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__} {getattr(cause, 'sqlstate', None) or ''}".strip()
