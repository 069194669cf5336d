"""`/console`: pages for the members of an organization, in the same web process, usable without JavaScript.

A page calls the same functions as the views of the API. `blueprints.py` has the checks before every page.
"""

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from flask import Flask, Response, redirect, request, url_for
from jinja2 import StrictUndefined
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as AnyResponse

from app.console import blueprints, error_pages, template_context, views
from app.console.blueprints import door
from app.console.cookie import ConsoleCookie

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
        return error_pages.page_of(error, response) if is_console(request.path) else response

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
        raise NotFound
    answer = Response(_FILES[name], content_type=f"{_TYPES[Path(name).suffix]}; charset=utf-8")
    if request.args.get("v") == _VERSIONS[name]:  # Of another version nothing is kept: during an update both are asked.
        answer.headers["Cache-Control"] = _FOR_EVER
    return answer
