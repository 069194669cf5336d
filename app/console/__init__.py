"""`/console`: pages for the members of an organization, in the same web process, usable without JavaScript.

A page calls the same functions as the views of the API. `blueprints.py` has the checks before every page.
"""

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from flask import Flask, Response, flash, g, make_response, redirect, render_template, request, url_for
from jinja2 import StrictUndefined
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import NotFound as PageNotFound
from werkzeug.wrappers import Response as AnyResponse

from app.console import blueprints, template_context, views
from app.console.blueprints import add_headers, door, mode_of, page_that_tells
from app.console.browser import ConsoleCookie
from app.console.caller import FormUsed
from app.console.slow_work import Busy
from app.console.views.activity import latest
from app.errors import NotFound, PointsError
from app.metrics.requests import current_record
from app.postgres.database import snapshot
from app.values.numbers import size

Handler = Callable[[Any], Response]


def add_console(app: Flask) -> None:
    """Register the console with the application."""
    for view in iter_modules(views.__path__):  # Each registers its pages on one of the two sets of `blueprints.py`.
        import_module(f"{views.__name__}.{view.name}")
    app.session_interface = ConsoleCookie()
    app.config.update(ConsoleCookie.SETTINGS)
    app.jinja_options = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    template_context.add_to(app)
    app.register_blueprint(blueprints.door)
    app.register_blueprint(blueprints.pages)


def as_page(handler: Handler) -> Handler:
    """Return a handler that answers errors of the console with a page, with the status of `handler`'s answer."""

    def answer(error: Exception) -> Response:
        response = handler(error)
        return _page_of(error, response) if is_console(request.path) else response

    return answer


def is_console(path: str) -> bool:
    return path == blueprints.ROOT or path.startswith(f"{blueprints.ROOT}/")


# The style, the script and the icon of the pages.
_FOLDER = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FILES = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
_VERSIONS = {name: hashlib.sha256(content).hexdigest()[:12] for name, content in _FILES.items()}
_FOR_EVER = "public, max-age=31536000, immutable"


@door.url_defaults
def _name_version(endpoint: str, values: dict[str, Any]) -> None:
    if endpoint == "console_door.static_file":
        values.setdefault("v", _VERSIONS[values["name"]])


@door.get("")
def front() -> AnyResponse:
    return redirect(url_for("console.overview", mode="live"))


@door.get("/static/<name>")
def static_file(name: str) -> Response:
    if name not in _FILES:
        raise PageNotFound
    answer = Response(_FILES[name], content_type=f"{_TYPES[Path(name).suffix]}; charset=utf-8")
    if request.args.get("v") == _VERSIONS[name]:  # Of another version nothing is kept: an update serves both.
        answer.headers["Cache-Control"] = _FOR_EVER
    return answer


_SENTENCES = {
    404: "There is nothing at this address, or it is not your organization's.",
    405: "This address does not take this kind of request.",
    503: "The service cannot reach its database, or is busy. Try again soon.",
}
_NOT_KNOWN = "It is not known whether this was done: the service failed while it did what you asked."


def _page_of(error: Exception, answer: Response) -> Response:
    """Answer with a page, with the status of `answer`.

    Its sentence is from an expected error or belongs to the status, never from a library.
    """
    if isinstance(error, FormUsed):
        flash(error.sentence, "bad")
        return add_headers(make_response(redirect(page_that_tells(), 303)))
    g.mode = mode_of(request.path)
    status = answer.status_code
    is_form = request.method not in ("GET", "HEAD")
    # Whatever fails in a view may fail after a COMMIT was sent; an expected error has a sentence of its own.
    is_unknown = is_form and status >= 500 and g.get("view_runs", False) and not isinstance(error, PointsError)
    body = render_template(
        "console/error.html",
        status=status,
        sentence=_sentence_of(error, status),
        not_known=_NOT_KNOWN if is_unknown else None,
        is_busy=isinstance(error, Busy),
        nothing_done=is_form and status == 503 and not is_unknown,
        overview=url_for("console.overview"),
        told_at=page_that_tells() if is_form and status != 403 else None,
        looks_again=status == 503 and not is_form,
    )
    page = add_headers(make_response(body, status))
    wait_s = error.retry_after_s if isinstance(error, Busy) else answer.headers.get("Retry-After")
    if wait_s is not None:
        page.headers["Retry-After"] = str(wait_s)
    return page


def _sentence_of(error: Exception, status: int) -> str:
    if isinstance(error, NotFound) and isinstance(error.name, int) and "member" in g:
        with snapshot() as connection:  # It may have been there, until somebody removed it.
            return f"{error.sentence} {latest(connection, error.noun, error.name)}".strip()
    if isinstance(error, PointsError):
        return error.sentence
    if isinstance(error, HTTPException) and status == 403 and error.description:
        return error.description
    if status == 413:
        return f"What you sent is too large: it may have up to {size(request.max_content_length or 0)}."
    ours = f"Something went wrong on our side. Quote {current_record().request_id} when you report it."
    return _SENTENCES.get(status, ours)
